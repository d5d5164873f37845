/** A stretch of time laid out from start to end: where a moment is on it, and where its ticks are. */

import { dateTime, timeOfDay } from "../page/formatting.js";
import { preferences } from "../page/preferences.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [1, 2, 5, 10, 15, 30]
  .map((minutes) => minutes * MINUTE)
  .concat([1, 2, 3, 6, 12].map((hours) => hours * HOUR))
  .concat([1, 2, 7, 14, 28, 91, 364].map((days) => days * DAY));

export class TimeAxis {
  /**
   * @param {number} from  milliseconds
   * @param {number} to
   */
  constructor(from, to) {
    this.from = from;
    this.to = Math.max(to, from + MINUTE);
  }

  /**
   * Lay out all of some moments.
   *
   * @param {Iterable<string | number | null | undefined>} moments
   */
  static over(moments) {
    let from = Infinity;
    let to = -Infinity;
    for (const moment of moments) {
      if (moment === null || moment === undefined) continue;
      const at = typeof moment === "number" ? moment : Date.parse(moment);
      from = Math.min(from, at);
      to = Math.max(to, at);
    }
    return from <= to ? new TimeAxis(from, to) : null;
  }

  /**
   * Return how far along a moment is, from 0 to 1.
   *
   * @param {number} at
   */
  share(at) {
    return Math.min(1, Math.max(0, (at - this.from) / (this.to - this.from)));
  }

  /**
   * List moments that are round in the zone that the person has chosen.
   *
   * @param {number} [most]
   * @returns {{ at: number, label: string }[]}
   */
  ticks(most = 6) {
    const step = STEPS.find((each) => (this.to - this.from) / each <= most) ?? (this.to - this.from) / most;
    const offset = preferences.zone === "utc" ? 0 : -new Date(this.from).getTimezoneOffset() * MINUTE;
    const found = [];
    for (let at = Math.ceil((this.from + offset) / step) * step - offset; at <= this.to; at += step) {
      found.push({ at, label: tickLabel(at) });
    }
    return found;
  }
}

/** @param {number} at */
function tickLabel(at) {
  const time = timeOfDay(at).slice(0, 5);
  return time === "00:00" ? dateTime(at).slice(5, 10) : time;
}
