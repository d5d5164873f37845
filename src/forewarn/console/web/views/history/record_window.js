/** The part of the history that is shown: older records on demand, newer ones as they come. */

import { messageOf } from "../../page/formatting.js";
import { api, stream } from "../../service/connected.js";
import { pause } from "../../service/operator_api.js";

/** @typedef {import("../../types").Record} Record */
/** @typedef {{ [name: string]: string | string[] }} Query */

const PAGE = 100;
// What was before and after a record that somebody was sent the address of.
const AROUND = 20;
// As long as somebody only watches, no more than this many are kept.
const MOST_WATCHED = 300;
// Records that come so close together are one reading, in milliseconds.
const TOGETHER = 100;
// Reading goes on at most a fourth of the time: to search takes the server a while.
const REST_FACTOR = 3;

/** Announces `changed`. */
export class RecordWindow extends EventTarget {
  /** The newest first. @type {Record[]} */
  records = [];
  /** Newer ones that are not shown yet, the newest first. @type {Record[]} */
  fresh = [];
  /** Whether there are more newer ones than `fresh` has. */
  hasMoreFresh = false;
  isReading = false;
  trouble = "";
  /** The record that it was opened around. @type {number | null} */
  at = null;

  /** @type {Query} */
  #query = {};
  /** @type {number | null} */
  #wantedAt = null;
  /** Where older ones go on, which may be below the last one that is shown: a search leaves some out. @type {string | null} */
  #next = null;
  /** Up to which number it was looked for newer ones, though none of them may be shown. */
  #lookedUpTo = 0;
  /** Tells answers of what was wanted before from those of what is wanted now. */
  #turn = 0;
  #isLooking = false;
  #looksAgain = false;

  get hasOlder() {
    return this.#next !== null;
  }

  /**
   * Show what a query finds: the newest, or what is around a number.
   *
   * @param {Query} query
   * @param {number | null} at
   */
  async open(query, at) {
    this.#query = query;
    this.#wantedAt = at;
    const turn = ++this.#turn;
    this.isReading = true;
    this.#lookedUpTo = at ?? stream.number;
    this.#changed();
    try {
      const [newer, older] = await Promise.all([
        at === null ? null : this.#read({ above: Math.max(at - 1, 0), limit: AROUND + 1 }),
        this.#read(at === null ? { limit: PAGE } : { after: String(at), limit: AROUND }),
      ]);
      if (turn !== this.#turn) return;
      this.records = [...(newer?.records.toReversed() ?? []), ...older.records];
      this.#next = older.next;
      this.trouble = "";
    } catch (error) {
      if (turn !== this.#turn) return;
      this.records = [];
      this.#next = null;
      this.trouble = messageOf(error);
    }
    this.fresh = [];
    this.hasMoreFresh = false;
    this.at = at;
    this.isReading = false;
    this.#changed();
    if (!this.trouble) this.#catchUp();
  }

  /** Read on where the list ends. */
  async older() {
    if (this.#next === null || this.isReading) return;
    const turn = this.#turn;
    this.isReading = true;
    this.#changed();
    try {
      const page = await this.#read({ after: this.#next, limit: PAGE });
      if (turn !== this.#turn) return;
      this.records = [...this.records, ...page.records];
      this.#next = page.next;
      this.trouble = "";
    } catch (error) {
      if (turn !== this.#turn) return;
      this.trouble = messageOf(error);
    }
    this.isReading = false;
    this.#changed();
    this.#catchUp();
  }

  /** After a failure: read again what could not be read; older records are read on demand. */
  #recover() {
    if (!this.records.length) {
      this.open(this.#query, this.#wantedAt);
      return;
    }
    this.trouble = "";
    this.#changed();
    this.look();
  }

  /** Look for what has come while something else was read. */
  #catchUp() {
    if (this.at !== null || stream.number > this.#lookedUpTo) this.look();
  }

  /** Look for newer ones; they wait in `fresh` until they are shown. */
  async look() {
    if (this.isReading) return;
    // A record or a new copy shows that the server answers again.
    if (this.trouble) {
      this.#recover();
      return;
    }
    if (this.hasMoreFresh) return;
    this.#looksAgain = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      while (this.#looksAgain && !this.hasMoreFresh) {
        await pause(TOGETHER);
        this.#looksAgain = false;
        const began = performance.now();
        await this.#lookOnce();
        if (this.#looksAgain) await pause((performance.now() - began) * REST_FACTOR);
      }
    } catch {
      // The link to the server is shown above; what is missing is found when it is back.
    }
    this.#isLooking = false;
  }

  async #lookOnce() {
    const turn = this.#turn;
    const heard = stream.number;
    const above = Math.max(this.#newest, this.#lookedUpTo);
    const page = await this.#read({ above, limit: PAGE });
    if (turn !== this.#turn) return;
    // Somebody may have taken up the fresh ones meanwhile.
    const known = this.#newest;
    this.fresh = [...page.records.filter((record) => record.number > known).toReversed(), ...this.fresh];
    this.hasMoreFresh = page.next !== null && page.records.length > 0;
    this.#lookedUpTo = page.next === null ? Math.max(heard, above) : Number(page.next);
    this.#looksAgain ||= page.next !== null;
    if (page.records.length) this.#changed();
  }

  get #newest() {
    return (this.fresh[0] ?? this.records[0])?.number ?? 0;
  }

  /** Show the newer ones, above the others. */
  takeFresh() {
    if (this.hasMoreFresh && this.at === null) {
      this.open(this.#query, null);
      return;
    }
    const all = [...this.fresh, ...this.records];
    const wasMore = this.hasMoreFresh;
    this.fresh = [];
    this.hasMoreFresh = false;
    this.records = all;
    if (wasMore) this.look();
    this.#changed();
  }

  /** Forget the oldest, so that a page that is open for days stays as light as it was. */
  trim() {
    if (this.records.length <= MOST_WATCHED) return;
    this.records = this.records.slice(0, MOST_WATCHED);
    this.#next = String(this.records.at(-1)?.number);
  }

  /**
   * @param {{ [name: string]: string | number }} page
   * @returns {Promise<import("../../types").Answer<"/v1/history", "get">>}
   */
  #read(page) {
    return api.get("/v1/history", { query: /** @type {any} */ ({ ...this.#query, ...page }) });
  }

  #changed() {
    this.dispatchEvent(new Event("changed"));
  }
}
