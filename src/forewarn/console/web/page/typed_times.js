/** Typed durations, in the command's syntax, and typed moments, in the chosen zone. */

import { preferences } from "./preferences.js";

/** @type {{ [unit: string]: number }} */
const UNITS = { d: 86400, h: 3600, m: 60, s: 1 };
const NUMBER = "[0-9]+(?:\\.[0-9]+)?";
const BARE = new RegExp(`^${NUMBER}$`);
const WITH_UNITS = new RegExp(`^(?:${NUMBER}[smhd])+$`);
const PART = new RegExp(`(${NUMBER})([smhd])`, "g");

export const EXPECTED_SPAN = "expected a time such as 90, 15m, 1h30m or 7d";

/**
 * Parse `90`, `15m`, `1h30m` or `7d` to seconds; null if the text is invalid.
 *
 * @param {string} typed
 * @returns {number | null}
 */
export function parseSpan(typed) {
  const text = typed.trim();
  if (BARE.test(text)) return Number(text);
  if (!WITH_UNITS.test(text)) return null;
  let seconds = 0;
  for (const [, number, unit] of text.matchAll(PART)) seconds += Number(number) * (UNITS[unit ?? ""] ?? 0);
  return seconds;
}

/**
 * Write seconds in the syntax of `parseSpan`: `1h30m`.
 *
 * @param {number} seconds
 */
export function typedSpan(seconds) {
  let left = seconds;
  const parts = Object.entries(UNITS).map(([unit, length]) => {
    const number = unit === "s" ? left : Math.floor(left / length);
    left -= number * length;
    return number ? `${number}${unit}` : "";
  });
  return parts.join("") || "0";
}

/**
 * Write a moment for a `datetime-local` field; "" if it is invalid.
 *
 * @param {string | null | undefined} at  RFC 3339
 */
export function momentToField(at) {
  const moment = new Date(at ?? "");
  if (Number.isNaN(moment.getTime())) return "";
  const shift = preferences.zone === "utc" ? 0 : moment.getTimezoneOffset() * 60_000;
  return new Date(moment.getTime() - shift).toISOString().slice(0, 19);
}

/**
 * Parse a `datetime-local` field for the API; "" if it is invalid.
 *
 * @param {string} typed
 */
export function momentFromField(typed) {
  const moment = new Date(preferences.zone === "utc" ? `${typed}Z` : typed);
  return Number.isNaN(moment.getTime()) ? "" : moment.toISOString().replace(".000Z", "Z");
}

export const EXPECTED_MOMENT = "expected a date and time such as 2027-03-02 22:00";
const MOMENT = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?$/;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Whether a text is a time as the API accepts it.
 *
 * @param {string} text
 */
export const isMoment = (text) => RFC_3339.test(text) && !Number.isNaN(Date.parse(text));

/**
 * Format a time for a text field, as `2027-03-02 22:00`; other text stays as it is.
 *
 * @param {string | null | undefined} at  RFC 3339
 */
export function momentToText(at) {
  const field = isMoment(at ?? "") ? momentToField(at) : "";
  return field ? field.replace("T", " ").replace(/:00$/, "") : (at ?? "");
}

/**
 * Read such a field as the API takes moments; other text stays as it is.
 *
 * @param {string} typed
 */
export function momentFromText(typed) {
  const text = typed.trim();
  if (!MOMENT.test(text)) return text;
  const [date, timeOfDay = "00:00"] = text.split(/[T ]/);
  return momentFromField(`${date}T${timeOfDay}`) || text;
}

/**
 * Return the moment of a local time in a zone; null for an unknown zone.
 *
 * @param {string} wall  such as `2027-03-02 22:00`
 * @param {string} zone  such as `Europe/Berlin`
 */
export function wallTime(wall, zone) {
  const asUtc = Date.parse(`${wall.replace(" ", "T")}:00Z`);
  try {
    // The second step corrects the first one near a change to or from summer time.
    const near = asUtc - shiftOf(zone, asUtc);
    return new Date(asUtc - shiftOf(zone, near)).toISOString().replace(".000Z", "Z");
  } catch {
    return null;
  }
}

/**
 * @param {string} zone
 * @param {number} at
 * @returns {number}  the zone's offset from UTC in milliseconds
 */
function shiftOf(zone, at) {
  const shown = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "medium" });
  return Date.parse(`${shown.format(at).replace(" ", "T")}Z`) - Math.floor(at / 1000) * 1000;
}
