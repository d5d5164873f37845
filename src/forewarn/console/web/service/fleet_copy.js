/**
 * A live copy of the fleet as the caller sees it. The stream keeps it up to date.
 *
 * Of a large fleet, only the machines in view are read: by group, by host or by name. Counts come from the summary.
 */

import { messageOf } from "../page/formatting.js";
import { groupKey, machineKey, MachineShelf } from "./machine_shelf.js";
import { PacedCounting } from "./paced_counting.js";
import { PacedReading } from "./paced_reading.js";

/** @typedef {import("../types").CopyChange} CopyChange */
/** @typedef {import("../types").Record} Record */
/** @typedef {import("../types").ListedEvent} ListedEvent */
/** @typedef {import("../types").Order} Order */
/** @typedef {import("../types").Machine} Machine */

// The server may need a moment to process what became due.
const ENDED_REASONS_EVERY = 2000;
const UNSAVED_HOLDS_EVERY = 5000;
// The number of newest records to keep for views.
const RECENT = 200;
// With more waiting records than this, the whole copy is read again.
const MOST_WAITING = 2000;

/**
 * Return a text that identifies a caller.
 *
 * @param {import("../types").Caller} caller
 */
export const identity = (caller) => JSON.stringify([caller.name, caller.role, caller.project]);

/**
 * Fires each `CopyChange`, and `loaded` after everything was read again. The `detail` of `events` has the keys of the
 * groups whose events changed.
 */
export class FleetCopy extends EventTarget {
  /** The caller; null before sign-in. @type {import("../types").Caller | null} */
  caller = null;
  isLoaded = false;
  /** Why the copy could not be read; empty if it could. */
  trouble = "";
  /** @type {Map<string, import("../types").Group>} */
  groups = new Map();
  /** @type {Map<string, import("../types").Project>} */
  projects = new Map();
  /** Null if the caller may not see hosts. @type {Map<string, import("../types").Host> | null} */
  hosts = null;
  /** Names of the installed drivers; empty if the caller may not see hosts. @type {string[]} */
  drivers = [];
  /** The events that guests see. @type {Map<string, ListedEvent>} */
  events = new Map();
  /** The open orders. @type {Map<string, Order>} */
  orders = new Map();
  /** The open rollouts. @type {Map<string, import("../types").Rollout> | null} */
  rollouts = null;
  /** @type {import("../types").Hold[] | null} */
  holds = null;
  /** Holds that were only in memory and could not be saved. They have no effect. @type {import("../types").Hold[]} */
  refusedHolds = [];
  /** @type {import("../types").Summary | null} */
  summary = null;
  /** The newest first. @type {Record[]} */
  records = [];
  machines;

  #api;
  #stream;
  #clock;
  /** @type {Record[]} */
  #waiting = [];
  #isStale = false;
  #isReading = false;
  #reading = new PacedReading(() => this.#read());
  #readReasonsAt = 0;
  #soughtHoldsAt = -Infinity;
  #counting = new PacedCounting(() => this.#count());
  /** @type {Map<string, ListedEvent[]> | null} */
  #eventsByMachine = null;

  /**
   * @param {import("./operator_api.js").OperatorApi} api
   * @param {import("./record_stream.js").RecordStream} stream
   * @param {import("./service_clock.js").ServiceClock} clock
   */
  constructor(api, stream, clock) {
    super();
    this.#api = api;
    this.#stream = stream;
    this.#clock = clock;
    this.machines = new MachineShelf(api);
    // Pass the detail on, so that listeners can check whether their machines changed.
    this.machines.addEventListener("changed", (event) =>
      this.dispatchEvent(new CustomEvent("machines", { detail: /** @type {CustomEvent} */ (event).detail })),
    );
    stream.addEventListener("gap", () => this.#outdated());
    stream.addEventListener("link", () => {
      this.#changed("link");
      this.#lookForUnsavedHolds();
    });
    stream.addEventListener("records", (event) => this.#heard(/** @type {CustomEvent} */ (event).detail));
    clock.addEventListener("tick", () => {
      this.#lookForEndedReasons();
      this.#lookForUnsavedHolds();
    });
  }

  /** The state of the connection to the server. */
  get link() {
    return this.#isStale && this.trouble ? "lost" : this.#stream.link;
  }

  /** @param {import("../types").Right} right */
  may(right) {
    return this.caller?.rights.includes(right) ?? false;
  }

  /**
   * Start to follow the fleet.
   *
   * @param {import("../types").Caller} caller
   */
  start(caller) {
    this.caller = caller;
    this.#clock.isFollowed = true;
    this.#stream.start(identity(caller));
  }

  /** Clear the copy, for example after sign-out. */
  stop() {
    this.#stream.stop();
    this.#clock.isFollowed = false;
    this.#reading.stop();
    this.#counting.stop();
    this.caller = null;
    this.isLoaded = false;
    this.#waiting = [];
    this.machines.clear();
    this.events.clear();
    this.orders.clear();
    this.records = [];
    this.hosts = this.rollouts = this.holds = this.summary = null;
    this.refusedHolds = [];
    this.drivers = [];
    this.#eventsByMachine = null;
  }

  /**
   * List the events that name a machine, sorted by NotBefore.
   *
   * @param {Machine} machine
   * @returns {ListedEvent[]}
   */
  eventsOf(machine) {
    if (!this.#eventsByMachine) this.#eventsByMachine = this.#index();
    return this.#eventsByMachine.get(machineKey(machine.project, machine.name)) ?? [];
  }

  #index() {
    /** @type {Map<string, ListedEvent[]>} */
    const found = new Map();
    const inOrder = [...this.events.values()].sort((one, other) =>
      one.not_before.localeCompare(other.not_before),
    );
    for (const event of inOrder) {
      for (const name of event.resources) {
        const key = machineKey(event.project ?? "", name);
        found.set(key, [...(found.get(key) ?? []), event]);
      }
    }
    return found;
  }

  #outdated() {
    this.#isStale = true;
    this.#reading.now();
  }

  /** @param {Record[]} records */
  #heard(records) {
    this.#waiting.push(...records);
    this.records = [...records.toReversed(), ...this.records].slice(0, RECENT);
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting = [];
      this.#isStale = true;
    }
    this.dispatchEvent(new CustomEvent("records", { detail: records }));
    this.#reading.soon();
  }

  /** @returns {Promise<boolean>}  whether the read succeeded */
  async #read() {
    if (!this.caller) return true;
    this.#isReading = true;
    const records = this.#waiting;
    this.#waiting = [];
    try {
      if (this.#isStale) await this.#load();
      else await this.#take(records);
      this.trouble = "";
    } catch (error) {
      this.#isStale = true;
      this.trouble = messageOf(error);
      this.#changed("link");
      if (this.caller) this.#reading.soon();
    }
    this.#isReading = false;
    return !this.trouble;
  }

  async #load() {
    this.#isStale = false;
    const asked = performance.now();
    const all = await this.#api.get("/v1/overview");
    this.#clock.take(all.clock, asked);
    this.summary = all.summary;
    this.#changed("summary");
    const survey = this.may("survey");
    if (all.drivers) this.#takeDrivers(all.drivers);
    await Promise.all([
      this.machines.load(all.summary.machines, all.machines),
      this.#readGroups(all.groups),
      this.#readProjects(all.projects),
      this.#readEvents(all.events),
      this.#readOrders(all.orders),
      survey ? this.#readHosts(all.hosts) : null,
      survey ? this.#readRollouts(all.rollouts) : null,
      survey ? this.#readHolds(all.holds) : null,
    ]);
    this.isLoaded = true;
    this.dispatchEvent(new Event("loaded"));
    this.#changed("link");
  }

  /** @param {Record[]} records */
  async #take(records) {
    /** @param {import("../types").Topic} topic */
    const concerns = (topic) => records.some((record) => record.topics.includes(topic));
    const survey = this.may("survey");
    const before = this.events;
    const events = concerns("events") ? this.#readEvents() : null;
    await Promise.all([
      events,
      this.#counting.rested(),
      concerns("clock") || !this.#clock.speed ? this.#clock.read() : null,
      concerns("groups") ? this.#readGroups() : null,
      concerns("projects") ? this.#readProjects() : null,
      concerns("orders") ? this.#readOrders() : null,
      survey && concerns("hosts") ? this.#readHosts() : null,
      survey && concerns("rollouts") ? this.#readRollouts() : null,
      survey && concerns("holds") ? this.#readHolds() : null,
      concerns("machines") ? this.#takeMachines(records, before, events) : null,
    ]);
  }

  /**
   * @param {Record[]} records
   * @param {Map<string, ListedEvent>} before  the events that were listed until now
   * @param {Promise<void> | null} events  being read
   */
  async #takeMachines(records, before, events) {
    const concerned = records.filter((record) => record.topics.includes("machines"));
    // The record of an event with several machines names only the event.
    if (concerned.some((record) => record.event && !record.machine)) await events;
    await this.machines.take(
      concerned,
      (id) => (this.events.get(id) ?? before.get(id))?.resources ?? [],
      () => this.#readSummary(),
    );
  }

  async #count() {
    this.summary = (await this.#api.get("/v1/summary")).summary;
    this.#changed("summary");
  }

  /** @returns {Promise<number>}  the number of machines in the fleet */
  async #readSummary() {
    await this.#counting.now();
    return this.summary?.machines ?? 0;
  }

  /** @param {import("../types").Overview["groups"]} [known]  if they have been read already */
  async #readGroups(known) {
    const groups = known ?? (await this.#api.all("/v1/groups", "groups"));
    this.groups = new Map(groups.map((group) => [group.name, group]));
    this.#changed("groups");
  }

  /** @param {import("../types").Overview["projects"]} [known]  if they have been read already */
  async #readProjects(known) {
    const projects = known ?? (await this.#api.all("/v1/projects", "projects"));
    this.projects = new Map(projects.map((project) => [project.name, project]));
    this.#changed("projects");
  }

  /** @param {import("../types").Overview["hosts"]} [known]  if they have been read already */
  async #readHosts(known) {
    const hosts = known ?? (await this.#api.all("/v1/hosts", "hosts"));
    this.hosts = new Map(hosts.map((host) => [host.name, host]));
    this.#changed("hosts");
  }

  /**
   * Drivers only change when the server restarts, and then everything is read again.
   *
   * @param {NonNullable<import("../types").Overview["drivers"]>} drivers
   */
  #takeDrivers(drivers) {
    this.drivers = drivers.filter((driver) => driver.installed).map((driver) => driver.name);
  }

  /** @param {import("../types").Overview["events"]} [known]  if they have been read already */
  async #readEvents(known) {
    const events = known ?? (await this.#api.all("/v1/events", "events"));
    const before = this.events;
    this.events = new Map(events.map((event) => [event.id, event]));
    const groups = new Set(
      [...differing(before, this.events)].map((event) => groupKey(event.group, event.project)),
    );
    if (!groups.size) return;
    this.#eventsByMachine = null;
    this.dispatchEvent(new CustomEvent("events", { detail: groups }));
  }

  /** @param {import("../types").Overview["orders"]} [known]  if they have been read already */
  async #readOrders(known) {
    const orders = known ?? (await this.#api.all("/v1/orders", "orders", { open: true }));
    this.orders = new Map(orders.map((order) => [order.id, order]));
    this.#changed("orders");
  }

  /** @param {import("../types").Overview["rollouts"]} [known]  if they have been read already */
  async #readRollouts(known) {
    const rollouts = known ?? (await this.#api.all("/v1/rollouts", "rollouts", { open: true }));
    this.rollouts = new Map(rollouts.map((rollout) => [rollout.id ?? "", rollout]));
    this.#changed("rollouts");
  }

  /** Read the holds. An unsaved hold has no record in the stream. */
  readHolds() {
    return this.#readHolds();
  }

  /** @param {import("../types").Overview["holds"]} [known]  if they have been read already */
  async #readHolds(known) {
    const holds = known ?? (await this.#api.get("/v1/holds")).holds;
    this.holds = holds.filter((hold) => hold.refused === null);
    this.refusedHolds = holds.filter((hold) => hold.refused !== null);
    this.#changed("holds");
  }

  /** A server without its database sends no records, but it applies unsaved holds. */
  #lookForUnsavedHolds() {
    if (this.link !== "lost" || !this.may("survey")) return;
    if (performance.now() - this.#soughtHoldsAt < UNSAVED_HOLDS_EVERY) return;
    this.#soughtHoldsAt = performance.now();
    // The stream reports a lost connection.
    this.#readHolds().catch(() => {});
  }

  /** Some reasons end without a record, such as a gap or a window. */
  #lookForEndedReasons() {
    if (this.#isReading || !this.isLoaded || this.link !== "live") return;
    const now = this.#clock.now();
    const waiting = [...this.orders.values(), ...(this.rollouts?.values() ?? [])];
    const hasEnded = waiting.some((each) => each.waiting_until && Date.parse(each.waiting_until) <= now);
    if (!hasEnded || performance.now() - this.#readReasonsAt < ENDED_REASONS_EVERY) return;
    this.#readReasonsAt = performance.now();
    const reads = [this.#readOrders(), this.may("survey") ? this.#readRollouts() : null];
    // The next full read handles a failure here.
    Promise.all(reads).catch(() => {});
  }

  /** @param {...CopyChange} changes */
  #changed(...changes) {
    for (const change of changes) this.dispatchEvent(new Event(change));
  }
}

/**
 * List items that are new, changed or removed.
 *
 * @template T
 * @param {Map<string, T>} before
 * @param {Map<string, T>} after
 * @returns {Set<T>}
 */
function differing(before, after) {
  /** @type {Set<T>} */
  const found = new Set();
  for (const [id, item] of before) if (!after.has(id)) found.add(item);
  for (const [id, item] of after) {
    if (JSON.stringify(before.get(id)) !== JSON.stringify(item)) found.add(item);
  }
  return found;
}
