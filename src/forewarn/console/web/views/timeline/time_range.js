/** Time ranges of the timeline: fixed, or following the clock. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** @typedef {{ from: number, to: number, follows: boolean }} TimeRange  milliseconds */

/** The ranges of the buttons. */
export const SPANS = [
  { name: "1h", label: "1 h", length: HOUR },
  { name: "6h", label: "6 h", length: 6 * HOUR },
  { name: "24h", label: "24 h", length: DAY },
  { name: "7d", label: "7 d", length: 7 * DAY },
];

const DEFAULT = 6 * HOUR;
const DEFAULT_OF_PHONES = HOUR;
const SHORTEST = 2 * MINUTE;
const LONGEST = 92 * DAY;
// The share of the width for the future.
const AHEAD = 0.4;
// A following range moves in this many steps. Between steps only the line of now moves.
const STEPS = 60;

/**
 * Parse the range in the query of a URL.
 *
 * @param {URLSearchParams} query
 * @param {number} now
 * @returns {TimeRange}
 */
export function rangeOf(query, now) {
  const from = Date.parse(query.get("from") ?? "");
  const to = Date.parse(query.get("to") ?? "");
  if (from < to) return { from, to: Math.min(to, from + LONGEST), follows: false };
  return following(lengthOf(query.get("span")), now);
}

/**
 * Format a range for the query of a URL.
 *
 * @param {TimeRange} range
 * @returns {{ [name: string]: string | null }}
 */
export function queryOf(range) {
  if (range.follows) return { span: nameOf(range.to - range.from), from: null, to: null };
  return { span: null, from: instant(range.from), to: instant(range.to) };
}

/**
 * Return a range around now that follows the clock.
 *
 * @param {number} length
 * @param {number} now
 * @returns {TimeRange}
 */
export function following(length, now) {
  const step = length / STEPS;
  const to = (Math.floor(now / step) + 1) * step + length * AHEAD;
  return { from: to - length, to, follows: true };
}

/**
 * Zoom around a fixed point. A following range keeps following if no point is given.
 *
 * @param {TimeRange} range
 * @param {number} factor  above 1 zooms out
 * @param {number} now
 * @param {number | null} [at]
 * @returns {TimeRange}
 */
export function zoomed(range, factor, now, at = null) {
  const length = within((range.to - range.from) * factor);
  if (range.follows && at === null) return following(length, now);
  const point = at ?? (range.from + range.to) / 2;
  const part = (point - range.from) / (range.to - range.from);
  return { from: point - part * length, to: point + (1 - part) * length, follows: false };
}

/**
 * Move a range in time.
 *
 * @param {TimeRange} range
 * @param {number} milliseconds
 * @returns {TimeRange}
 */
export const moved = (range, milliseconds) => ({
  from: range.from + milliseconds,
  to: range.to + milliseconds,
  follows: false,
});

/** @param {number} length */
export const nameOf = (length) =>
  SPANS.find((span) => span.length === Math.round(length))?.name ?? `${Math.round(length / 1000)}s`;

/** @param {string | null} name */
function lengthOf(name) {
  const found = SPANS.find((span) => span.name === name);
  if (found) return found.length;
  const seconds = /^(\d{1,9})s$/.exec(name ?? "")?.[1];
  if (seconds) return within(Number(seconds) * 1000);
  return matchMedia("(max-width: 48rem)").matches ? DEFAULT_OF_PHONES : DEFAULT;
}

/** @param {number} length */
const within = (length) => Math.min(LONGEST, Math.max(SHORTEST, length));

/** @param {number} at */
export const instant = (at) => new Date(Math.round(at / 1000) * 1000).toISOString().replace(".000Z", "Z");
