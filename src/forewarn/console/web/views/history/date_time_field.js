/** Times that people type, in the zone that they have chosen. */

import { preferences } from "../../page/preferences.js";

/**
 * Write a time as a field of type `datetime-local` takes it; "" for what is none.
 *
 * @param {string | undefined} at
 */
export function fieldValue(at) {
  const date = new Date(at ?? "");
  if (Number.isNaN(date.getTime())) return "";
  const shift = preferences.zone === "utc" ? 0 : date.getTimezoneOffset() * 60_000;
  return new Date(date.getTime() - shift).toISOString().slice(0, 19);
}

/**
 * Read such a field as the API takes times; "" for what is none.
 *
 * @param {string} value
 */
export function fieldTime(value) {
  const date = new Date(preferences.zone === "utc" ? `${value}Z` : value);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString().replace(".000Z", "Z");
}
