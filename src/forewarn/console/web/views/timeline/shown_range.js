/** The range that is shown: while somebody drags or zooms, the one that has come of it; else what the address says. */

import { router } from "../../page/router.js";
import { clock } from "../../service/connected.js";
import { following, moved, queryOf, rangeOf, zoomed } from "./time_range.js";

/** @typedef {import("./time_range.js").TimeRange} TimeRange */

// The address is written when the hand rests: browsers refuse pages that do it in every frame.
const REST = 250;

/** Announces `changed`. */
export class ShownRange extends EventTarget {
  /** @type {TimeRange | null} */
  #moved = null;
  #timer = 0;

  /** @param {AbortSignal} signal  when nobody looks any more */
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
   * @param {{ isAtOnce?: boolean }} [how]  whether the address says it at once
   */
  show(range, { isAtOnce = false } = {}) {
    this.#moved = range;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => router.setQuery(queryOf(range)), isAtOnce ? 0 : REST);
    this.dispatchEvent(new Event("changed"));
  }

  /** Go with the clock. @param {number} [length] */
  follow(length = this.length) {
    this.show(following(length, clock.now()), { isAtOnce: true });
  }

  /** @param {number} part  of what is shown */
  step(part) {
    this.show(moved(this.value, part * this.length));
  }

  /**
   * @param {number} factor  above 1 shows more
   * @param {number | null} [part]  of what is shown: what stays where it is
   */
  zoom(factor, part = null) {
    const range = this.value;
    const at = part === null ? null : range.from + part * this.length;
    this.show(zoomed(range, factor, clock.now(), at));
  }
}
