/** The loaded part of the history: older records on demand, newer ones live. */

import { messageOf } from "../../page/formatting.js";
import { api, stream } from "../../service/connected.js";
import { pause } from "../../service/operator_api.js";

/** @typedef {import("../../types").Record} Record */
/** @typedef {{ [name: string]: string | string[] }} Query */

const PAGE = 100;
// The number of records to show on each side of a linked record.
const AROUND = 20;
// An open page without interaction keeps at most this many records.
const MOST_WATCHED = 300;
// Records within this time share one request, in milliseconds.
const TOGETHER = 100;
// After a request, the page waits this many times its duration, because a search costs the server time.
const REST_FACTOR = 3;

/** Dispatches `changed`. */
export class RecordWindow extends EventTarget {
  /** Newest first. @type {Record[]} */
  records = [];
  /** Newer records that are not shown yet, newest first. @type {Record[]} */
  fresh = [];
  /** Whether the server has more newer records than `fresh`. */
  hasMoreFresh = false;
  isReading = false;
  trouble = "";
  /** The linked record in the middle of the window. @type {number | null} */
  at = null;

  /** @type {Query} */
  #query = {};
  /** @type {number | null} */
  #wantedAt = null;
  /** The cursor for older records. During a search it may be below the last match. @type {string | null} */
  #next = null;
  /** The highest record number that was searched, even if it did not match. */
  #searchedUpTo = 0;
  /** The number of the current query, to ignore late answers to earlier queries. */
  #turn = 0;
  #isLoadingNewer = false;
  #mustLoadAgain = false;

  get hasOlder() {
    return this.#next !== null;
  }

  /**
   * Load the matches of a query: the newest, or those around a record number.
   *
   * @param {Query} query
   * @param {number | null} at
   */
  async open(query, at) {
    this.#query = query;
    this.#wantedAt = at;
    const turn = ++this.#turn;
    this.isReading = true;
    this.#searchedUpTo = at ?? stream.number;
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

  /** Load more records at the end of the list. */
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

  /** Repeat a failed request. Older records are loaded on demand only. */
  #recover() {
    if (!this.records.length) {
      this.open(this.#query, this.#wantedAt);
      return;
    }
    this.trouble = "";
    this.#changed();
    this.look();
  }

  /** Load the records that arrived during another request. */
  #catchUp() {
    if (this.at !== null || stream.number > this.#searchedUpTo) this.look();
  }

  /** Load newer records into `fresh`. */
  async look() {
    if (this.isReading) return;
    // A new record or a reload shows that the server answers again.
    if (this.trouble) {
      this.#recover();
      return;
    }
    if (this.hasMoreFresh) return;
    this.#mustLoadAgain = true;
    if (this.#isLoadingNewer) return;
    this.#isLoadingNewer = true;
    try {
      while (this.#mustLoadAgain && !this.hasMoreFresh) {
        await pause(TOGETHER);
        this.#mustLoadAgain = false;
        const began = performance.now();
        await this.#loadNewer();
        if (this.#mustLoadAgain) await pause((performance.now() - began) * REST_FACTOR);
      }
    } catch {
      // The page shows the lost connection. Missing records are loaded after the reconnect.
    }
    this.#isLoadingNewer = false;
  }

  async #loadNewer() {
    const turn = this.#turn;
    const streamed = stream.number;
    const above = Math.max(this.#newest, this.#searchedUpTo);
    const page = await this.#read({ above, limit: PAGE });
    if (turn !== this.#turn) return;
    // `takeFresh` may have run during the request.
    const known = this.#newest;
    this.fresh = [...page.records.filter((record) => record.number > known).toReversed(), ...this.fresh];
    this.hasMoreFresh = page.next !== null && page.records.length > 0;
    this.#searchedUpTo = page.next === null ? Math.max(streamed, above) : Number(page.next);
    this.#mustLoadAgain ||= page.next !== null;
    if (page.records.length) this.#changed();
  }

  get #newest() {
    return (this.fresh[0] ?? this.records[0])?.number ?? 0;
  }

  /** Move the newer records into the list. */
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

  /** Drop the oldest records, so that a page can stay open for days. */
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
