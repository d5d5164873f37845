/** Times, durations and counts for readers. */

import { preferences } from "./preferences.js";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Write a duration with its two largest units: `14 m 32 s`, `2 d 3 h`.
 *
 * @param {number} seconds
 */
export function span(seconds) {
  const whole = Math.round(Math.abs(seconds));
  const sign = seconds < 0 && whole ? "−" : "";
  if (whole < MINUTE) return `${sign}${whole} s`;
  if (whole < HOUR) return sign + pair(whole, MINUTE, "m", 1, "s");
  if (whole < DAY) return sign + pair(whole, HOUR, "h", MINUTE, "m");
  return sign + pair(whole, DAY, "d", HOUR, "h");
}

/** Write a measured duration, with tenths of a second if it is short. @param {number} seconds */
export const measured = (seconds) => (seconds < 10 ? `${Math.round(seconds * 10) / 10} s` : span(seconds));

/**
 * @param {number} whole
 * @param {number} large
 * @param {string} largeUnit
 * @param {number} small
 * @param {string} smallUnit
 */
function pair(whole, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${largeUnit}${rest ? ` ${rest} ${smallUnit}` : ""}`;
}

/**
 * Write the distance of a time from now: `in 14 m`, `3 h ago`.
 *
 * @param {number} at  milliseconds
 * @param {number} now
 */
export function distance(at, now) {
  const seconds = (at - now) / 1000;
  if (Math.abs(seconds) < 0.5) return "now";
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}

/**
 * Write when an event that has not started may start: `in 14 m`, or `due for 20 s` if it is late.
 *
 * @param {number} at  milliseconds
 * @param {number} now
 */
export function untilStart(at, now) {
  const overdue = (now - at) / 1000;
  return overdue < 0.5 ? distance(at, now) : `due for ${span(overdue)}`;
}

/** @param {"local" | "utc"} zone */
const zoneOf = (zone) => (zone === "utc" ? "UTC" : undefined);

/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/**
 * @param {"local" | "utc"} zone
 * @param {string} name
 * @param {Intl.DateTimeFormatOptions} options
 */
function format(zone, name, options) {
  const key = `${zone} ${name}`;
  let found = formats.get(key);
  if (!found) {
    // Swedish dates are ISO dates, which sort correctly.
    found = new Intl.DateTimeFormat("sv-SE", { timeZone: zoneOf(zone), ...options });
    formats.set(key, found);
  }
  return found;
}

/**
 * Write a date and time in the chosen zone.
 *
 * @param {number | string | Date} at
 * @param {"local" | "utc"} [zone]
 */
export function dateTime(at, zone = preferences.zone) {
  const text = format(zone, "both", {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  }).format(new Date(at));
  return zone === "utc" ? `${text} UTC` : text;
}

/**
 * Write the time of day.
 *
 * @param {number | string | Date} at
 * @param {"local" | "utc"} [zone]
 */
export function timeOfDay(at, zone = preferences.zone) {
  return format(zone, "time", { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(new Date(at));
}

/**
 * Write the day of a time: `Monday 2026-11-16`.
 *
 * @param {number | string | Date} at
 * @param {"local" | "utc"} [zone]
 */
export function day(at, zone = preferences.zone) {
  const date = new Date(at);
  const weekday = WEEKDAYS[zone === "utc" ? date.getUTCDay() : date.getDay()];
  return `${weekday} ${format(zone, "day", { year: "numeric", month: "2-digit", day: "2-digit" }).format(date)}`;
}

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/**
 * Write a count with its noun: `1 machine`, `12 machines`.
 *
 * @param {number} number
 * @param {string} noun
 * @param {string} [plural]
 */
export function count(number, noun, plural = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/**
 * Write names as a list, with the number of omitted names.
 *
 * @param {readonly string[]} names
 * @param {number} [most]
 */
export function listed(names, most = 6) {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most).join(", ")} and ${count(names.length - most, "more", "more")}`;
}

/**
 * Shorten a text in its middle, because the names of machines differ at their ends.
 *
 * @param {string} text
 * @param {number} letters  the limit
 */
export function shortened(text, letters) {
  if (text.length <= letters) return text;
  const end = Math.ceil((letters - 1) / 2);
  return `${text.slice(0, letters - 1 - end)}…${text.slice(text.length - end)}`;
}

/**
 * Shorten an id to the length that the command accepts.
 *
 * @param {string} id
 */
export const shortId = (id) => id.slice(0, 8);

/**
 * Write a time briefly: with its date only if it is not today.
 *
 * @param {number | string} at
 * @param {number} now
 */
export function brieflyAt(at, now) {
  const full = dateTime(at);
  return full.slice(0, 10) === dateTime(now).slice(0, 10) ? full.slice(11, 19) : full.slice(5, 16);
}

/**
 * Return the message of an error.
 *
 * @param {unknown} error
 */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));
