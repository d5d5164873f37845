/** Spans of time as people type them, and as the command takes them: `90`, `15m`, `1h30m`, `7d`. */

/** @type {{ [unit: string]: number }} */
const UNITS = { d: 86400, h: 3600, m: 60, s: 1 };
const NUMBER = "[0-9]+(?:\\.[0-9]+)?";
const BARE = new RegExp(`^${NUMBER}$`);
const WITH_UNITS = new RegExp(`^(?:${NUMBER}[smhd])+$`);
const PART = new RegExp(`(${NUMBER})([smhd])`, "g");

export const EXPECTED_SPAN = "expected a time such as 90, 15m, 1h30m or 7d";

/**
 * Read a span of time in seconds; null if it is none.
 *
 * @param {string} typed
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
 * Write a span of time as it is typed: `1h30m`.
 *
 * @param {number} seconds
 */
export function writeSpan(seconds) {
  let left = Math.round(seconds);
  let text = "";
  for (const [unit, size] of Object.entries(UNITS)) {
    if (left >= size) text += `${Math.floor(left / size)}${unit}`;
    left %= size;
  }
  return text || "0s";
}
