/** Ended orders, newest first, loaded page by page. */

import { messageOf } from "../../page/formatting.js";
import { api, copy } from "../../service/connected.js";

/** @typedef {import("../../types").Order} Order */
/** @typedef {import("../../types").Record} Record */

const PAGE = 100;
// Orders that end within this time share one request, in milliseconds.
const TOGETHER = 1000;
const ENDS = ["order-done", "order-cancelled", "order-abandoned", "order-failed"];

/** Dispatches `changed`. */
export class PastOrders extends EventTarget {
  /** @type {Order[]} */
  orders = [];
  hasMore = false;
  isReading = false;
  trouble = "";
  #state = "";
  /** @type {string | null} */
  #next = null;
  #timer = 0;
  #isStarted = false;
  /** The number of the current request, to ignore late answers to earlier requests. */
  #turn = 0;

  /** @param {AbortSignal} signal */
  constructor(signal) {
    super();
    copy.addEventListener("loaded", () => this.#again(), { signal });
    copy.addEventListener("records", (event) => this.#onRecords(/** @type {CustomEvent} */ (event).detail), {
      signal,
    });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** Load the orders in a state; "" for any. @param {string} state */
  want(state) {
    if (this.#isStarted && state === this.#state) return;
    this.#isStarted = true;
    this.#state = state;
    this.orders = [];
    this.#next = null;
    this.#read(null);
  }

  /** Load the next page. */
  more() {
    if (this.#next) this.#read(this.#next);
  }

  /** @param {Record[]} records */
  #onRecords(records) {
    if (records.some((record) => ENDS.includes(record.kind))) this.#again();
  }

  #again() {
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#read(null);
    }, TOGETHER);
  }

  /** @param {string | null} after */
  async #read(after) {
    const turn = ++this.#turn;
    this.isReading = true;
    try {
      const state = /** @type {any} */ (this.#state || undefined);
      const page = await api.get("/v1/orders", { query: { limit: PAGE, state, after } });
      if (turn !== this.#turn) return;
      this.#take(page.orders.filter((order) => order.ended_at));
      if (after || !this.#next) this.#next = page.next;
      this.hasMore = this.#next !== null;
      this.trouble = "";
    } catch (error) {
      if (turn !== this.#turn) return;
      this.trouble = messageOf(error);
    }
    this.isReading = false;
    this.dispatchEvent(new Event("changed"));
  }

  /** @param {Order[]} read */
  #take(read) {
    const known = new Map(this.orders.map((order) => [order.id, order]));
    for (const order of read) known.set(order.id, order);
    this.orders = [...known.values()].sort((one, other) => other.created_at.localeCompare(one.created_at));
  }
}
