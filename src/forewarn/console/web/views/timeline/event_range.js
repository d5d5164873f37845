/** The events of a time range: current ones from the live copy, past ones fetched on demand. */

import { messageOf } from "../../page/formatting.js";
import { api, clock, copy } from "../../service/connected.js";

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("../../types").Record} Record */

const PAGE = 500;
// The most past events to draw. The history lists all of them.
const MOST = 5000;
// Records within this time share one request, in milliseconds.
const TOGETHER = 300;
// The delay before a failed request is repeated, in milliseconds.
const RETRY = 3000;
// A record may arrive this late, in milliseconds.
const SLACK = 2000;
// After these records an event has ended, or its delivered notice is known.
const ENDS = ["event-finished", "event-cancelled", "event-withdrawn", "event-started"];

/** Dispatches `changed`. */
export class EventRange extends EventTarget {
  trouble = "";
  isReading = false;
  /** Whether some past events were left out. */
  isCut = false;
  /** Fetched events: ended ones, and started ones with their delivered notice. @type {Map<string, AnyEvent>} */
  #read = new Map();
  /** The start of the known past. */
  #knownFrom = Infinity;
  /** Events of the live copy, combined with their fetched notice. @type {WeakMap<AnyEvent, AnyEvent>} */
  #noted = new WeakMap();
  #wantedFrom = Infinity;
  /** The time of the last request for changes. */
  #readAt = Infinity;
  #isStale = false;
  #timer = 0;

  /** @param {AbortSignal} signal  aborted when the view closes */
  constructor(signal) {
    super();
    copy.addEventListener("events", () => this.#changed(), { signal });
    copy.addEventListener("loaded", () => this.#forget(), { signal });
    copy.addEventListener("records", (event) => this.#onRecords(/** @type {CustomEvent} */ (event).detail), {
      signal,
    });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** Whether the first request is still running. */
  get isFirstReading() {
    return this.#knownFrom === Infinity && !this.trouble;
  }

  /** @returns {AnyEvent[]} */
  values() {
    const events = new Map(this.#read);
    for (const [id, event] of copy.events) {
      const read = this.#read.get(id);
      // The fetched event may be newer than the copy. An ended event does not come back.
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
   * Load all events since a time.
   *
   * @param {number} from
   */
  want(from) {
    this.#wantedFrom = from;
    if (from < this.#knownFrom) this.#plan(0);
  }

  /** Load everything again after a reconnect, because the store may have changed. */
  #forget() {
    this.#knownFrom = Infinity;
    this.#plan(0);
  }

  /** @param {Record[]} records */
  #onRecords(records) {
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

  /** Fetch events before the known past. */
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

  /** Fetch the events that changed since the last request. */
  async #readOn() {
    this.#isStale = false;
    const now = clock.now();
    this.#take(await this.#pages(Math.min(this.#readAt, now) - SLACK, null));
    this.#readAt = now;
    if (this.#read.size <= MOST) return;
    // A page that stays open for days keeps only the visible range.
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
 * Whether an event matches a search.
 *
 * @param {AnyEvent} event
 * @param {string} wanted  in lower case
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
