/** Days that follow one another, as ranges. */

const DAY = 86_400_000;

/**
 * Join days that follow one another: each range is its first and its last day.
 *
 * @param {readonly string[]} days  as 2026-12-24, in their order
 */
export function dayRanges(days) {
  /** @type {[string, string][]} */
  const found = [];
  for (const day of days) {
    const last = found.at(-1);
    if (last && Date.parse(day) - Date.parse(last[1]) === DAY) last[1] = day;
    else found.push([day, day]);
  }
  return found;
}

/**
 * Write days as a list of ranges: `2026-12-24 to 2027-01-01, 2027-05-01`.
 *
 * @param {readonly string[]} days
 */
export const dayRangesInWords = (days) =>
  dayRanges(days)
    .map(([first, last]) => (first === last ? first : `${first} to ${last}`))
    .join(", ");
