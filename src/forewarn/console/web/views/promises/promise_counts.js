/** Filtering and totals of the promise counts. */

/** @typedef {import("../../types").PromiseCount} PromiseCount */
/** @typedef {"" | "real" | "simulated"} Work */
/** @typedef {{ project: string, from: string, to: string, work: Work }} Wanted */
/** @typedef {{ kept: number, late: number, never: number, judged: number, broken: number, unannounced: number }} Counts */

/** The outcomes of a promise of notice, best first. */
export const OUTCOMES = /** @type {const} */ (["kept", "late", "never"]);

/**
 * @param {URLSearchParams} query
 * @returns {Wanted}
 */
export function readWanted(query) {
  const work = query.get("work") ?? "";
  return {
    project: query.get("project") ?? "",
    from: query.get("from") ?? "",
    to: query.get("to") ?? "",
    work: work === "real" || work === "simulated" ? work : "",
  };
}

/**
 * @param {PromiseCount} row
 * @param {Wanted} wanted
 */
export function isWanted(row, { project, from, to, work }) {
  if (project && row.project !== project) return false;
  if ((from && row.month < from) || (to && row.month > to)) return false;
  return !work || row.simulated === (work === "simulated");
}

/**
 * @param {readonly PromiseCount[]} rows
 * @returns {Counts}
 */
export function total(rows) {
  const sum = { kept: 0, late: 0, never: 0, judged: 0, broken: 0, unannounced: 0 };
  for (const row of rows) {
    for (const name of /** @type {(keyof Counts)[]} */ (Object.keys(sum))) sum[name] += row[name];
  }
  return sum;
}

/**
 * Format the kept share. A value below 100 % is never rounded up to 100 %.
 *
 * @param {Counts} counts
 */
export function share({ kept, judged }) {
  if (!judged) return "–";
  if (kept === judged) return "100 %";
  return `${Math.min((kept / judged) * 100, 99.9).toFixed(1)} %`;
}

/**
 * Return the start and end of a month in UTC.
 *
 * @param {string} month  as `2026-11`
 */
export function bounds(month) {
  const [year = 0, number = 1] = month.split("-").map(Number);
  const time = (/** @type {number} */ index) =>
    new Date(Date.UTC(year, index)).toISOString().replace(".000Z", "Z");
  return { since: time(number - 1), until: time(number) };
}

const NAMES = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** @param {string} month */
export const monthName = (month) => NAMES[Number(month.slice(5)) - 1] ?? month;
