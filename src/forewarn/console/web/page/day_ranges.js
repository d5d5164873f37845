/** Ranges of consecutive days. */

const DAY = 86_400_000;

/**
 * Join consecutive days to ranges: the first and the last day of each.
 *
 * @param {readonly string[]} days  such as 2026-12-24, sorted
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
