/**
 * A time axis that folds long idle stretches: a rollout that waits for a night's window shows its work, not the day
 * before.
 */

import { ticks } from "../page/ticks.js";

/** @typedef {{ from: number, to: number }} Stretch  milliseconds */

const MINUTE = 60_000;
// An idle stretch is folded if it is longer than this share of the busy time.
const LONG = 0.4;
// The share of the axis for one fold, and the limit for all folds.
const FOLD = 0.04;
const ALL_FOLDS = 0.25;

export class TimeAxis {
  /** Stretches at their true scale, with their begin and end as shares of the axis. */
  #shown;

  /** @param {readonly Stretch[]} shown  in order, without overlap */
  constructor(shown) {
    const fold = Math.min(FOLD, ALL_FOLDS / Math.max(1, shown.length - 1));
    const whole = shown.reduce((sum, { from, to }) => sum + to - from, 0);
    const room = 1 - fold * (shown.length - 1);
    let at = 0;
    this.#shown = shown.map(({ from, to }) => {
      const begin = at;
      at = begin + ((to - from) / whole) * room;
      const stretch = { from, to, begin, end: at };
      at += fold;
      return stretch;
    });
  }

  /**
   * Lay out busy stretches; null if there are none.
   *
   * @param {readonly Stretch[]} stretches
   */
  static over(stretches) {
    const merged = joined(stretches);
    const busy = merged.reduce((sum, { from, to }) => sum + to - from, 0);
    const shown = merged.reduce((/** @type {Stretch[]} */ found, next) => {
      const last = found.at(-1);
      if (last && next.from - last.to <= Math.max(MINUTE, busy * LONG)) last.to = next.to;
      else found.push({ ...next });
      return found;
    }, []);
    const last = shown.at(-1);
    if (!last) return null;
    last.to = Math.max(last.to, last.from + MINUTE);
    return new TimeAxis(shown);
  }

  get from() {
    return this.#shown[0]?.from ?? 0;
  }

  get to() {
    return this.#shown.at(-1)?.to ?? 0;
  }

  /**
   * Return the position of a moment on the axis, from 0 to 1.
   *
   * @param {number} at
   */
  share(at) {
    for (const [place, { from, to, begin, end }] of this.#shown.entries()) {
      if (at < from) return place ? ((this.#shown[place - 1]?.end ?? 0) + begin) / 2 : 0;
      if (at <= to) return begin + ((at - from) / (to - from || 1)) * (end - begin);
    }
    return 1;
  }

  /** The folds, as shares of the axis. */
  get folds() {
    return this.#shown.slice(1).map((next, place) => {
      const before = this.#shown[place];
      return { begin: before?.end ?? 0, end: next.begin, seconds: (next.from - (before?.to ?? 0)) / 1000 };
    });
  }

  /**
   * List round moments in the chosen time zone.
   *
   * @param {number} [most]
   */
  ticks(most = 7) {
    const whole = this.#shown.reduce((sum, { from, to }) => sum + to - from, 0);
    return this.#shown.flatMap(({ from, to }) => ticks({ from, to }, whole / most));
  }
}

/**
 * Join overlapping stretches.
 *
 * @param {readonly Stretch[]} stretches
 */
function joined(stretches) {
  /** @type {Stretch[]} */
  const found = [];
  for (const { from, to } of [...stretches].sort((one, other) => one.from - other.from)) {
    const last = found.at(-1);
    if (last && from <= last.to) last.to = Math.max(last.to, to);
    else found.push({ from, to });
  }
  return found;
}
