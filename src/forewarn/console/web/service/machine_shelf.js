/** The machines that the page knows: all of a small fleet, of a large one those that somebody looks at. */

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("../types").Record} Record */
/** @typedef {{ group?: string, host?: string, begins?: string, project?: string, name?: string[] }} Wanted */

// Up to so many are read at once, and all that views show of them is reckoned on the page.
export const WHOLE_FLEET = 3000;
// The API takes so many names at once.
const NAMES_AT_ONCE = 200;

/**
 * What a machine is found by: names are unique in their project, without case.
 *
 * @param {string} project
 * @param {string} name
 */
export const machineKey = (project, name) => `${project}/${name.toLowerCase()}`;

/** Announces `changed`; the event's `detail` are the keys of the machines that are new, different or gone, or null for all. */
export class MachineShelf extends EventTarget {
  /** Whether these are all machines of the fleet. */
  isWhole = false;
  /** @type {Map<string, Machine>} */
  #machines = new Map();
  /** What was asked for, and is read again after a connection was lost. @type {Map<string, Wanted>} */
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

  clear() {
    this.#machines.clear();
    this.#wanted.clear();
    this.isWhole = false;
  }

  /**
   * Read the machines anew.
   *
   * @param {number} size  how many the fleet has
   */
  async load(size) {
    this.isWhole = size <= WHOLE_FLEET;
    const lists = this.isWhole ? [{}] : [...this.#wanted.values()];
    const read = await Promise.all(lists.map((wanted) => this.#api.all("/v1/machines", "machines", wanted)));
    this.#machines = new Map(
      read.flat().map((machine) => [machineKey(machine.project, machine.name), machine]),
    );
    this.#announce(null);
  }

  /**
   * Read machines that a view is going to show, and keep them up to date from then on.
   *
   * @param {Wanted} wanted
   */
  async want(wanted) {
    const key = JSON.stringify(wanted);
    if (this.isWhole || this.#wanted.has(key)) return;
    this.#wanted.set(key, wanted);
    try {
      this.#put(await this.#api.all("/v1/machines", "machines", wanted));
    } catch (error) {
      this.#wanted.delete(key);
      throw error;
    }
  }

  /**
   * Whether what a view wants has been asked for.
   *
   * @param {Wanted} wanted
   */
  has(wanted) {
    return this.isWhole || this.#wanted.has(JSON.stringify(wanted));
  }

  /**
   * Read again what records name.
   *
   * @param {Record[]} records
   * @param {Set<string>} families
   */
  async take(records, families) {
    if (families.has("fleet")) {
      await this.load(this.isWhole ? this.size : Infinity);
      return;
    }
    const named = new Map();
    for (const record of records) {
      if (!record.machine) continue;
      const key = machineKey(record.project ?? "", record.machine);
      if (this.#machines.has(key) || this.#concerns(record)) named.set(key, record.machine);
    }
    if (families.has("order") || families.has("host")) {
      // What is abandoned or fails need not have a record for each machine.
      for (const [key, machine] of this.#machines)
        if (machine.state !== "running") named.set(key, machine.name);
    }
    if (named.size) await this.#readAgain(named);
  }

  /** @param {Map<string, string>} named */
  async #readAgain(named) {
    const names = [...new Set(named.values())];
    const parts = [];
    for (let from = 0; from < names.length; from += NAMES_AT_ONCE)
      parts.push(names.slice(from, from + NAMES_AT_ONCE));
    const read = await Promise.all(parts.map((name) => this.#api.all("/v1/machines", "machines", { name })));
    const found = read.flat().filter((machine) => named.has(machineKey(machine.project, machine.name)));
    const left = new Set(named.keys());
    for (const machine of found) left.delete(machineKey(machine.project, machine.name));
    for (const key of left) this.#machines.delete(key);
    this.#put(found, [...left]);
  }

  /**
   * @param {Machine[]} machines
   * @param {string[]} [gone]
   */
  #put(machines, gone = []) {
    const keys = machines.map((machine) => {
      const key = machineKey(machine.project, machine.name);
      this.#machines.set(key, machine);
      return key;
    });
    this.#announce([...keys, ...gone]);
  }

  /** @param {Record} record */
  #concerns(record) {
    if (this.isWhole) return true;
    return [...this.#wanted.values()].some(
      (wanted) =>
        (wanted.group && wanted.group === record.group) ||
        (wanted.host && wanted.host === record.host) ||
        (wanted.name && record.machine && wanted.name.includes(record.machine)),
    );
  }

  /** @param {string[] | null} keys */
  #announce(keys) {
    this.dispatchEvent(new CustomEvent("changed", { detail: keys }));
  }
}
