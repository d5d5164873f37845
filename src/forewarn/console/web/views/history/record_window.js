/** The part of the history that is shown: older records on demand, newer ones as they come. */

import { api } from "../../service/connected.js";

/** @typedef {import("../../types").Record} Record */
/** @typedef {{ [name: string]: string | string[] }} Query */

const PAGE = 100;
// What was before and after a record that somebody was sent the address of.
const AROUND = 20;
// As long as somebody only watches, no more than this many are kept.
const MOST_WATCHED = 300;

/** Announces `changed`. */
export class RecordWindow extends EventTarget {
  /** The newest first. @type {Record[]} */
  records = [];
  /** Newer ones that are not shown yet, the newest first. @type {Record[]} */
  fresh = [];
  /** Whether there are more newer ones than `fresh` has. */
  hasMoreFresh = false;
  hasOlder = false;
  isReading = false;
  trouble = "";
  /** The record that it was opened around. @type {number | null} */
  at = null;

  /** @type {Query} */
  #query = {};
  /** Tells answers of what was wanted before from those of what is wanted now. */
  #turn = 0;
  #isLooking = false;
  #looksAgain = false;

  /**
   * Show what a query finds: the newest, or what is around a number.
   *
   * @param {Query} query
   * @param {number | null} at
   */
  async open(query, at) {
    this.#query = query;
    const turn = ++this.#turn;
    this.isReading = true;
    this.#changed();
    try {
      const [newer, older] = await Promise.all([
        at === null ? null : this.#read({ above: Math.max(at - 1, 0), limit: AROUND + 1 }),
        this.#read(at === null ? { limit: PAGE } : { after: String(at), limit: AROUND }),
      ]);
      if (turn !== this.#turn) return;
      this.records = [...(newer?.records.toReversed() ?? []), ...older.records];
      this.hasOlder = older.next !== null;
      this.trouble = "";
    } catch (error) {
      if (turn !== this.#turn) return;
      this.records = [];
      this.hasOlder = false;
      this.trouble = messageOf(error);
    }
    this.fresh = [];
    this.hasMoreFresh = false;
    this.at = at;
    this.isReading = false;
    this.#changed();
    if (at !== null && !this.trouble) this.look();
  }

  /** Read on where the list ends. */
  async older() {
    const last = this.records.at(-1);
    if (!last || this.isReading) return;
    const turn = this.#turn;
    this.isReading = true;
    this.#changed();
    try {
      const page = await this.#read({ after: String(last.number), limit: PAGE });
      if (turn !== this.#turn) return;
      this.records = [...this.records, ...page.records];
      this.hasOlder = page.next !== null;
      this.trouble = "";
    } catch (error) {
      if (turn !== this.#turn) return;
      this.trouble = messageOf(error);
    }
    this.isReading = false;
    this.#changed();
  }

  /** Look for newer ones; they wait in `fresh` until they are shown. */
  async look() {
    if (this.isReading || this.hasMoreFresh) return;
    this.#looksAgain = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      while (this.#looksAgain && !this.hasMoreFresh) {
        this.#looksAgain = false;
        await this.#lookOnce();
      }
    } catch {
      // The link to the server is shown above; what is missing is found when it is back.
    }
    this.#isLooking = false;
  }

  async #lookOnce() {
    const turn = this.#turn;
    const top = this.fresh[0] ?? this.records[0];
    const page = await this.#read({ above: top?.number ?? 0, limit: PAGE });
    if (turn !== this.#turn || !page.records.length) return;
    // Somebody may have taken up the fresh ones meanwhile.
    const known = (this.fresh[0] ?? this.records[0])?.number ?? 0;
    this.fresh = [...page.records.filter((record) => record.number > known).toReversed(), ...this.fresh];
    this.hasMoreFresh = page.next !== null;
    this.#changed();
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
    this.hasOlder = true;
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

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));
