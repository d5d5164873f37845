/** The events of a range of time: the current ones from the live copy, the past ones read from the API as they are needed. */

import { messageOf } from "../../page/formatting.js";
import { api, clock, copy } from "../../service/connected.js";

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("../../types").Record} Record */

const PAGE = 500;
// More past events than that are not drawn: they would be a carpet, and the history has them all.
const MOST = 5000;
// Records that come so close together are one reading, in milliseconds.
const TOGETHER = 300;
// What could not be read is tried again so much later.
const RETRY = 3000;
// A record may be a moment older than the time at which it is heard of.
const SLACK = 2000;
// After these an event is over, or has the notice that was got of it.
const ENDS = ["event-finished", "event-cancelled", "event-withdrawn", "event-started"];

/** Announces `changed`. */
export class SeenEvents extends EventTarget {
  trouble = "";
  isReading = false;
  /** Whether there are more past events than are kept. */
  isCut = false;
  /** Those that were read: over, or started with the notice that was got. @type {Map<string, AnyEvent>} */
  #read = new Map();
  /** From when on the past is known. */
  #knownFrom = Infinity;
  /** Events of the copy with what was read of their notice. @type {WeakMap<AnyEvent, AnyEvent>} */
  #noted = new WeakMap();
  #wantedFrom = Infinity;
  /** When it was last read what is new. */
  #readAt = Infinity;
  #isStale = false;
  #timer = 0;

  /** @param {AbortSignal} signal  when nobody looks any more */
  constructor(signal) {
    super();
    copy.addEventListener("events", () => this.#changed(), { signal });
    copy.addEventListener("loaded", () => this.#forget(), { signal });
    copy.addEventListener("records", (event) => this.#heard(/** @type {CustomEvent} */ (event).detail), {
      signal,
    });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** Whether nothing of the past is known yet. */
  get isFirstReading() {
    return this.#knownFrom === Infinity && !this.trouble;
  }

  /** @returns {AnyEvent[]} */
  values() {
    const events = new Map(this.#read);
    for (const [id, event] of copy.events) {
      const read = this.#read.get(id);
      // What was read may be newer than the copy; what has ended does not come back.
      if (read?.ended_at) continue;
      events.set(id, read?.notice ? this.#withNotice(event, read.notice) : event);
    }
    for (const [id, event] of this.#read) if (!event.ended_at && !copy.events.has(id)) events.delete(id);
    return [...events.values()];
  }

  /**
   * @param {AnyEvent} event
   * @param {import("../../elements/event_facts.js").Notice} notice
   */
  #withNotice(event, notice) {
    let noted = this.#noted.get(event);
    if (!noted) this.#noted.set(event, (noted = { ...event, notice }));
    return noted;
  }

  /**
   * See to it that what happened since a time is known.
   *
   * @param {number} from
   */
  want(from) {
    this.#wantedFrom = from;
    if (from < this.#knownFrom) this.#plan(0);
  }

  /** After a lost connection, or with another store, everything may be different. */
  #forget() {
    this.#knownFrom = Infinity;
    this.#plan(0);
  }

  /** @param {Record[]} records */
  #heard(records) {
    if (!records.some((record) => ENDS.includes(record.kind))) return;
    this.#isStale = true;
    this.#plan(TOGETHER);
  }

  /** @param {number} milliseconds */
  #plan(milliseconds) {
    if (this.isReading || this.#timer) return;
    this.#timer = setTimeout(() => this.#readNow(), this.trouble ? RETRY : milliseconds);
  }

  async #readNow() {
    this.#timer = 0;
    this.isReading = true;
    try {
      if (this.#wantedFrom < this.#knownFrom) await this.#readBack();
      if (this.#isStale) await this.#readOn();
      this.trouble = "";
    } catch (error) {
      this.trouble = messageOf(error);
    }
    this.isReading = false;
    this.#changed();
    if (this.#wantedFrom < this.#knownFrom || this.#isStale) this.#plan(TOGETHER);
  }

  /** Read further back than was known. */
  async #readBack() {
    const from = this.#wantedFrom;
    const now = clock.now();
    const isFirst = this.#knownFrom === Infinity;
    const found = await this.#pages(from, isFirst ? null : this.#knownFrom);
    if (isFirst) {
      this.#read = new Map();
      this.#readAt = now;
    }
    this.#take(found);
    this.#knownFrom = from;
  }

  /** Read what has happened since the last time. */
  async #readOn() {
    this.#isStale = false;
    const now = clock.now();
    this.#take(await this.#pages(Math.min(this.#readAt, now) - SLACK, null));
    this.#readAt = now;
    if (this.#read.size <= MOST) return;
    // A page that is open for days keeps only what it shows.
    const from = this.#wantedFrom;
    for (const [id, event] of this.#read) {
      if (event.ended_at && Date.parse(event.ended_at) < from) this.#read.delete(id);
    }
    this.#knownFrom = Math.max(this.#knownFrom, from);
  }

  /** @param {AnyEvent[]} found */
  #take(found) {
    for (const event of found) if (event.ended_at || event.started_at) this.#read.set(event.id, event);
  }

  /**
   * @param {number} from
   * @param {number | null} to
   */
  async #pages(from, to) {
    const since = new Date(from).toISOString();
    const until = to === null ? null : new Date(to).toISOString();
    /** @type {AnyEvent[]} */
    const found = [];
    let after = null;
    do {
      /** @type {import("../../types").Answer<"/v1/events", "get">} */
      const page = await api.get("/v1/events", {
        query: { all: true, notices: true, limit: PAGE, after, since, until },
      });
      found.push(...page.events);
      after = page.next;
    } while (after && found.length < MOST);
    this.isCut = after !== null;
    return found;
  }

  #changed() {
    this.dispatchEvent(new Event("changed"));
  }
}

/**
 * Whether an event is of what somebody looks for.
 *
 * @param {AnyEvent} event
 * @param {string} wanted  in small letters
 */
export function eventMatches(event, wanted) {
  const words = [
    event.type,
    event.group ?? "standalone",
    event.project ?? "",
    event.id,
    event.order,
    ...event.resources,
  ];
  return words.some((word) => word.toLowerCase().includes(wanted));
}
