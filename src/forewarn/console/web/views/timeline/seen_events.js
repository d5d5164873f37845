/** The events of a range of time: the current ones from the live copy, the past ones read from the API as they are needed. */

import { api, clock, copy } from "../../service/connected.js";

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("../../types").Record} Record */

const PAGE = 500;
// More past events than that are not drawn: they would be a carpet, and the history has them all.
const MOST = 5000;
// Records that come so close together are one reading.
const TOGETHER = 300;
// What could not be read is tried again so much later.
const RETRY = 3000;
// Kinds of records after which an event is over, or was there for a moment only.
const ENDS = ["event-finished", "event-cancelled", "event-withdrawn", "event-started"];

/** Announces `changed`. */
export class SeenEvents extends EventTarget {
  trouble = "";
  isReading = false;
  /** Whether there are more past events than are kept. */
  isCut = false;
  /** @type {Map<string, AnyEvent>} */
  #past = new Map();
  /** From when on the past is known. */
  #knownFrom = Infinity;
  #wantedFrom = Infinity;
  #timer = 0;
  /** What was announced longest ago of what is to be read again. */
  #staleFrom = Infinity;

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

  /** @returns {AnyEvent[]} */
  values() {
    const events = new Map(this.#past);
    for (const [id, event] of copy.events) events.set(id, event);
    return [...events.values()];
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

  #forget() {
    this.#knownFrom = Infinity;
    this.#plan(0);
  }

  /** @param {Record[]} records */
  #heard(records) {
    const ended = records.filter((record) => record.event && ENDS.includes(record.kind));
    if (!ended.length) return;
    for (const record of ended) {
      const known = copy.events.get(record.event ?? "") ?? this.#past.get(record.event ?? "");
      this.#staleFrom = Math.min(this.#staleFrom, Date.parse(known?.announced_at ?? record.at));
    }
    this.#plan(TOGETHER);
  }

  /** @param {number} milliseconds */
  #plan(milliseconds) {
    if (this.isReading || this.#timer) return;
    this.#timer = setTimeout(() => this.#read(), this.trouble ? RETRY : milliseconds);
  }

  async #read() {
    this.#timer = 0;
    this.isReading = true;
    const isNew = this.#wantedFrom < this.#knownFrom;
    const from = isNew ? this.#wantedFrom : this.#staleFrom;
    this.#staleFrom = Infinity;
    try {
      if (from < Infinity) await this.#readFrom(from);
      if (isNew) this.#knownFrom = from;
      this.trouble = "";
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
    }
    this.isReading = false;
    this.#changed();
    if (this.#wantedFrom < this.#knownFrom || this.#staleFrom < Infinity) this.#plan(TOGETHER);
  }

  /** @param {number} from */
  async #readFrom(from) {
    // Events that were long announced when they ended are older than what happened to them.
    const since = new Date(Math.min(from, clock.now())).toISOString();
    let after = null;
    this.isCut = false;
    for (let read = 0; ; read += PAGE) {
      /** @type {any} */
      const query = { all: true, limit: PAGE, after };
      const page = await api.get("/v1/events", { query });
      if (page.events.every((event) => event.announced_at < since)) return;
      for (const event of page.events) if (event.ended_at) this.#past.set(event.id, event);
      after = page.next;
      if (!after) return;
      if (read + PAGE >= MOST) {
        this.isCut = true;
        return;
      }
    }
  }

  #changed() {
    this.dispatchEvent(new Event("changed"));
  }
}
