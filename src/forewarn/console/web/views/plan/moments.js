/** Moments as a field of a form has them, in the zone that the person has chosen. */

import { preferences } from "../../page/preferences.js";

const MINUTE = 60_000;

/**
 * Write a moment for a field of kind `datetime-local`.
 *
 * @param {string} at  RFC 3339
 */
export function toField(at) {
  const moment = Date.parse(at);
  if (Number.isNaN(moment)) return "";
  const offset = preferences.zone === "utc" ? 0 : new Date(moment).getTimezoneOffset() * MINUTE;
  return new Date(moment - offset).toISOString().slice(0, 16);
}

/**
 * Read a moment from such a field; null if there is none.
 *
 * @param {string} typed
 */
export function fromField(typed) {
  const moment = Date.parse(preferences.zone === "utc" ? `${typed}Z` : typed);
  return Number.isNaN(moment) ? null : new Date(moment).toISOString().replace(".000Z", "Z");
}
