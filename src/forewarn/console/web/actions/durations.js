/** Durations and times as people type them, as the command takes them. */

import { preferences } from "../page/preferences.js";

const UNITS = /** @type {const} */ ({ d: 86400, h: 3600, m: 60, s: 1 });

/**
 * Read `90`, `15m`, `1h30m` or `7d`; null if it is none.
 *
 * @param {string} text
 * @returns {number | null}
 */
export function seconds(text) {
  const written = text.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(written)) return Number(written);
  if (!/^(\d+(\.\d+)?[dhms])+$/.test(written)) return null;
  let sum = 0;
  for (const [, number, unit] of written.matchAll(/([\d.]+)([dhms])/g)) {
    sum += Number(number) * UNITS[/** @type {keyof typeof UNITS} */ (unit)];
  }
  return sum;
}

/**
 * Read what a field for date and time has, in the zone that the person has chosen, as RFC 3339.
 *
 * @param {string} text  `2026-01-31T12:00`
 */
export function instant(text) {
  const at = new Date(preferences.zone === "utc" ? `${text}Z` : text);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().replace(".000Z", "Z");
}
