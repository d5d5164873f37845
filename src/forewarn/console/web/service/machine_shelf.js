/** The machines in the live copy: all of a small fleet, or those in view of a large one. */

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("../types").Record} Record */
/** @typedef {{ group?: string, host?: string, bound_for?: string, contains?: string, project?: string, name?: string[] }} Wanted */
/**
 * The keys of new, changed and removed machines, and their groups; null for all machines.
 *
 * @typedef {{ keys: string[], groups: Set<string> } | null} MachineChange
 */

// Fleets up to this size are read whole, and views count their machines in the browser.
const WHOLE_FLEET = 3000;
// The API's limit for names in a query.
const NAMES_AT_ONCE = 200;
// Natural order: web-2 comes before web-10.
const IN_ORDER = new Intl.Collator("en", { numeric: true });

/**
 * Return the key of a machine. Names are unique in their project, ignoring case.
 *
 * @param {string} project
 * @param {string} name
 */
export const machineKey = (project, name) => `${project}/${name.toLowerCase()}`;

/**
 * Return the key of a group. The standalone machines of a project share a key.
 *
 * @param {string | null} group
 * @param {string | null} project
 */
export const groupKey = (group, project) => group ?? `/${project ?? ""}`;

/** @param {Machine} machine */
const keyOf = (machine) => machineKey(machine.project, machine.name);

/** @param {Machine} machine */
const groupOf = (machine) => groupKey(machine.group, machine.project);

/** Fires `changed`, with a `MachineChange` as its `detail`. */
export class MachineShelf extends EventTarget {
  /** Whether the shelf has all machines of the fleet. */
  isWhole = false;
  /** @type {Map<string, Machine>} */
  #machines = new Map();
  /** The same, by group. @type {Map<string, Map<string, Machine>>} */
  #groups = new Map();
  /** Groups that are not sorted yet. @type {Set<string>} */
  #unsorted = new Set();
  /** The current wants of views, each with its number of views. @type {Map<string, { wanted: Wanted, views: number, isRead: boolean }>} */
  #wanted = new Map();
  #api;

  /** @param {import("./operator_api.js").OperatorApi} api */
  constructor(api) {
    super();
    this.#api = api;
  }

  get size() {
    return this.#machines.size;
  }

  values() {
    return this.#machines.values();
  }

  /**
   * @param {string} project
   * @param {string} name
   */
  get(project, name) {
    return this.#machines.get(machineKey(project, name));
  }

  /**
   * List the known machines of a group, sorted by name.
   *
   * @param {string} key  from `groupKey`
   * @returns {Machine[]}
   */
  ofGroup(key) {
    const members = this.#groups.get(key);
    if (members && this.#unsorted.delete(key)) {
      const sorted = [...members].sort(([, one], [, other]) => IN_ORDER.compare(one.name, other.name));
      this.#groups.set(key, new Map(sorted));
    }
    return [...(this.#groups.get(key)?.values() ?? [])];
  }

  /**
   * List the known machines on a host, sorted by name.
   *
   * @param {string} host
   */
  onHost(host) {
    return [...this.#machines.values()]
      .filter((machine) => machine.host === host)
      .sort((one, other) => IN_ORDER.compare(one.name, other.name));
  }

  /**
   * List the known machines that move to a host now or later, sorted by name.
   *
   * @param {string} host
   */
  boundFor(host) {
    return [...this.#machines.values()]
      .filter((machine) => machine.bound_for === host)
      .sort((one, other) => IN_ORDER.compare(one.name, other.name));
  }

  clear() {
    this.#machines.clear();
    this.#groups.clear();
    this.#wanted.clear();
    this.isWhole = false;
  }

  /**
   * Read the machines again.
   *
   * @param {number} size  the number of machines in the fleet
   * @param {Machine[] | null} [all]  the machines, if they are already read
   */
  async load(size, all = null) {
    this.isWhole = size <= WHOLE_FLEET;
    const asked = [...this.#wanted.values()];
    const lists = this.isWhole ? [{}] : asked.map(({ wanted }) => wanted);
    const read =
      all ??
      (await Promise.all(lists.map((wanted) => this.#api.all("/v1/machines", "machines", wanted)))).flat();
    this.#machines = new Map(read.map((machine) => [keyOf(machine), machine]));
    for (const each of asked) each.isRead = true;
    this.#group();
    this.#announce(null);
  }

  /**
   * Read machines for a view, and keep them up to date until `release`.
   *
   * @param {Wanted} wanted
   */
  async want(wanted) {
    const key = JSON.stringify(wanted);
    const known = this.#wanted.get(key);
    if (known) {
      known.views += 1;
      return;
    }
    const asked = { wanted, views: 1, isRead: this.isWhole };
    this.#wanted.set(key, asked);
    if (this.isWhole) return;
    try {
      const read = await this.#api.all("/v1/machines", "machines", wanted);
      if (this.#wanted.get(key) !== asked) return; // released meanwhile
      asked.isRead = true;
      this.#put(read);
    } catch (error) {
      if (this.#wanted.get(key) === asked) this.#wanted.delete(key);
      throw error;
    }
  }

  /**
   * End a view's `want`. Machines that no other view shows are dropped.
   *
   * @param {Wanted} wanted
   */
  release(wanted) {
    const key = JSON.stringify(wanted);
    const asked = this.#wanted.get(key);
    if (!asked) return;
    asked.views -= 1;
    if (asked.views) return;
    this.#wanted.delete(key);
    if (this.isWhole) return;
    const left = [...this.#wanted.values()];
    const gone = [...this.#machines.values()].filter(
      (machine) => !left.some((each) => matches(machine, each.wanted)),
    );
    for (const machine of gone) this.#delete(keyOf(machine));
  }

  /**
   * Whether the wanted machines are read.
   *
   * @param {Wanted} wanted
   */
  has(wanted) {
    return this.isWhole || (this.#wanted.get(JSON.stringify(wanted))?.isRead ?? false);
  }

  /**
   * Read the machines of these records again.
   *
   * @param {Record[]} records
   * @param {(event: string) => readonly string[]} namesOf  returns the machines of an event
   * @param {() => Promise<number>} count  returns the number of machines in the fleet
   */
  async take(records, namesOf, count) {
    if (records.some(concernsAll)) {
      await this.load(await count());
      return;
    }
    /** @type {Map<string, string>} */
    const named = new Map();
    for (const record of records) {
      if (record.machine) {
        const key = machineKey(record.project ?? "", record.machine);
        if (this.#machines.has(key) || this.#concerns(record)) named.set(key, record.machine);
      } else
        for (const machine of this.#concernedBy(record, namesOf)) named.set(keyOf(machine), machine.name);
    }
    if (named.size) await this.#readAgain(named);
  }

  /**
   * List the known machines that a record without a machine concerns.
   *
   * @param {Record} record
   * @param {(event: string) => readonly string[]} namesOf
   */
  #concernedBy({ event, group, host, project }, namesOf) {
    if (event) return namesOf(event).flatMap((name) => this.get(project ?? "", name) ?? []);
    if (group) return this.ofGroup(group);
    if (host) return [...this.onHost(host), ...this.boundFor(host)];
    return this.ofGroup(groupKey(null, project));
  }

  /** @param {Map<string, string>} named */
  async #readAgain(named) {
    const names = [...new Set(named.values())];
    const parts = [];
    for (let from = 0; from < names.length; from += NAMES_AT_ONCE)
      parts.push(names.slice(from, from + NAMES_AT_ONCE));
    const read = await Promise.all(parts.map((name) => this.#api.all("/v1/machines", "machines", { name })));
    const found = read.flat().filter((machine) => named.has(keyOf(machine)));
    const gone = new Set(named.keys());
    for (const machine of found) gone.delete(keyOf(machine));
    this.#put(found, [...gone]);
  }

  /**
   * @param {Machine[]} machines
   * @param {string[]} [gone]
   */
  #put(machines, gone = []) {
    /** @type {string[]} */
    const keys = [];
    const groups = new Set();
    for (const machine of machines) {
      const key = keyOf(machine);
      const before = this.#machines.get(key);
      if (before && JSON.stringify(before) === JSON.stringify(machine)) continue;
      // Insert a new machine, or one with a new group, at its sorted place.
      if (before && groupOf(before) !== groupOf(machine)) groups.add(this.#delete(key));
      this.#machines.set(key, machine);
      this.#place(key, machine);
      keys.push(key);
      groups.add(groupOf(machine));
    }
    for (const key of gone) {
      if (this.#machines.has(key)) groups.add(this.#delete(key));
      keys.push(key);
    }
    if (keys.length) this.#announce({ keys, groups });
  }

  /**
   * @param {string} key
   * @param {Machine} machine
   */
  #place(key, machine) {
    const group = groupOf(machine);
    const members = this.#groups.get(group) ?? new Map();
    if (!members.has(key)) this.#unsorted.add(group);
    this.#groups.set(group, members.set(key, machine));
  }

  /**
   * @param {string} key
   * @returns {string}  the machine's group
   */
  #delete(key) {
    const machine = /** @type {Machine} */ (this.#machines.get(key));
    const group = groupOf(machine);
    this.#machines.delete(key);
    this.#groups.get(group)?.delete(key);
    if (!this.#groups.get(group)?.size) {
      this.#groups.delete(group);
      this.#unsorted.delete(group);
    }
    return group;
  }

  #group() {
    this.#groups = new Map();
    this.#unsorted.clear();
    for (const [key, machine] of this.#machines) this.#place(key, machine);
  }

  /** @param {Record} record */
  #concerns(record) {
    if (this.isWhole) return true;
    const machine = { ...record, name: record.machine ?? "" };
    return [...this.#wanted.values()].some((each) => matches(machine, each.wanted));
  }

  /** @param {MachineChange} change */
  #announce(change) {
    this.dispatchEvent(new CustomEvent("changed", { detail: change }));
  }
}

/** Whether a record concerns all machines. @param {Record} record */
const concernsAll = ({ machine, event, group, host, project }) =>
  !(machine || event || group || host || project);

// Shorter parts match too many ids.
export const LEAST_OF_ID = 4;

/**
 * Whether a machine's name, address or vm-id contains a text, as in the API's `contains` filter.
 *
 * @param {{ name: string, address?: string | null, vm_id?: string }} machine
 * @param {string} text
 */
export function hasText({ name, address, vm_id: id }, text) {
  const part = text.toLowerCase();
  return (
    name.toLowerCase().includes(part) ||
    (address ?? "").toLowerCase().includes(part) ||
    (part.length >= LEAST_OF_ID && (id ?? "").toLowerCase().includes(part))
  );
}

/**
 * Whether a machine matches a filter.
 *
 * @param {{ name: string, project: string | null, group: string | null, host: string | null, bound_for?: string | null, address?: string | null, vm_id?: string }} machine
 * @param {Wanted} wanted
 */
function matches(machine, wanted) {
  const name = machine.name.toLowerCase();
  return (
    (wanted.project === undefined || wanted.project === machine.project) &&
    (wanted.group === undefined || wanted.group === machine.group) &&
    (wanted.host === undefined || wanted.host === machine.host) &&
    (wanted.bound_for === undefined || wanted.bound_for === machine.bound_for) &&
    (wanted.contains === undefined || hasText(machine, wanted.contains)) &&
    (wanted.name === undefined || wanted.name.some((each) => each.toLowerCase() === name))
  );
}
