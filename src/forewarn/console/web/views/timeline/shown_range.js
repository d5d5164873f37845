/** The visible time range: from the URL, or from a gesture in progress. */

import { router } from "../../page/router.js";
import { clock } from "../../service/connected.js";
import { following, moved, queryOf, rangeOf, zoomed } from "./time_range.js";

/** @typedef {import("./time_range.js").TimeRange} TimeRange */

// The URL is updated after a pause, in milliseconds, because browsers limit updates in every frame.
const REST = 250;

/** Dispatches `changed`. */
export class ShownRange extends EventTarget {
  /** @type {TimeRange | null} */
  #moved = null;
  #timer = 0;

  /** @param {AbortSignal} signal  aborted when the view closes */
  constructor(signal) {
    super();
    router.addEventListener("query", () => (this.#moved = null), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** @returns {TimeRange} */
  get value() {
    const now = clock.now();
    if (this.#moved && !this.#moved.follows) return this.#moved;
    if (this.#moved) return following(this.#moved.to - this.#moved.from, now);
    return rangeOf(router.query, now);
  }

  get length() {
    const { from, to } = this.value;
    return to - from;
  }

  /**
   * @param {TimeRange} range
   * @param {{ isAtOnce?: boolean }} [how]  whether to update the URL at once
   */
  show(range, { isAtOnce = false } = {}) {
    this.#moved = range;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => router.setQuery(queryOf(range)), isAtOnce ? 0 : REST);
    this.dispatchEvent(new Event("changed"));
  }

  /** Follow the clock. @param {number} [length] */
  follow(length = this.length) {
    this.show(following(length, clock.now()), { isAtOnce: true });
  }

  /** @param {number} part  the share of the visible range */
  step(part) {
    this.show(moved(this.value, part * this.length));
  }

  /**
   * @param {number} factor  above 1 shows more
   * @param {number | null} [part]  the fixed point, as a share of the visible range
   */
  zoom(factor, part = null) {
    const range = this.value;
    const at = part === null ? null : range.from + part * this.length;
    this.show(zoomed(range, factor, clock.now(), at));
  }
}
