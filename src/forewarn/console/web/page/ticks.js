/** The lines of a time axis and their labels. */

import { dateTime } from "./formatting.js";
import { preferences } from "./preferences.js";

/** @typedef {{ at: number, label: string, isDay: boolean }} Tick */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const STEPS = [
  MINUTE / 4,
  MINUTE,
  2 * MINUTE,
  5 * MINUTE,
  10 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
];

/**
 * List round moments in the chosen time zone.
 *
 * @param {{ from: number, to: number }} range  milliseconds
 * @param {number} wanted  the least distance between two of them
 * @returns {Tick[]}
 */
export function ticks(range, wanted) {
  const step = STEPS.find((each) => each >= wanted) ?? 30 * DAY;
  const shift = offset(range.from);
  /** @type {Tick[]} */
  const found = [];
  for (let at = Math.ceil((range.from + shift) / step) * step - shift; at <= range.to; at += step) {
    found.push(tick(at, step));
  }
  return found;
}

/**
 * @param {number} at
 * @param {number} step
 * @returns {Tick}
 */
function tick(at, step) {
  const text = dateTime(at);
  const isDay = text.slice(11, 19) === "00:00:00";
  const timeText = step < MINUTE ? text.slice(11, 19) : text.slice(11, 16);
  return { at, label: isDay ? text.slice(5, 10) : timeText, isDay };
}

/** The offset of the chosen zone from UTC, so that lines are at full hours. @param {number} at */
const offset = (at) => (preferences.zone === "utc" ? 0 : -new Date(at).getTimezoneOffset() * MINUTE);
