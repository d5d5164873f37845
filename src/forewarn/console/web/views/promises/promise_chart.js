/** A chart of promises by month: stacked bars that differ by pattern and number, not only by colour. */

import { count } from "../../page/formatting.js";
import { svg } from "../../page/tree.js";
import { monthName, OUTCOMES, share, total } from "./promise_counts.js";

/** @typedef {import("../../types").PromiseCount} PromiseCount */
/** @typedef {import("./promise_counts.js").Counts} Counts */
/** @typedef {{ month: string, isSimulated: boolean, counts: Counts }} Bar */

const HEIGHT = 180;
const TOP = 34;
const LEFT = 44;
const BAR = 44;
const SPACE = 14;
const MONTH_SPACE = 34;
const LEAST_WIDTH = 300;
// The minimum height of a part that is not zero.
const LEAST = 3;
// The minimum height of a part that shows its number.
const ROOM_FOR_NUMBER = 15;

/** @param {readonly PromiseCount[]} rows */
export function promiseChart(rows) {
  const months = [...Map.groupBy(rows, (row) => row.month)].sort(([one], [other]) => (one < other ? -1 : 1));
  const bars = months.map(([month, of]) => barsOf(month, of));
  const highest = Math.max(1, ...bars.flat().map((bar) => bar.counts.judged));
  let x = LEFT + SPACE;
  const drawn = bars.map((ofMonth) => {
    const start = x;
    x += ofMonth.length * (BAR + SPACE) - SPACE + MONTH_SPACE;
    return monthBars(ofMonth, start, highest);
  });
  const width = Math.max(x - MONTH_SPACE + SPACE, LEAST_WIDTH);
  const height = TOP + HEIGHT + 52;
  return svg(
    "svg",
    {
      class: "promise-chart",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": description(bars.flat()),
    },
    svg(
      "defs",
      null,
      pattern("late", "M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6"),
      pattern("never", "M0 0 L8 8 M0 8 L8 0"),
    ),
    axis(highest, width),
    drawn,
  );
}

/**
 * @param {string} month
 * @param {readonly PromiseCount[]} rows
 * @returns {Bar[]}
 */
function barsOf(month, rows) {
  return [false, true]
    .map((isSimulated) => ({ isSimulated, of: rows.filter((row) => row.simulated === isSimulated) }))
    .filter(({ of }) => of.length)
    .map(({ isSimulated, of }) => ({ month, isSimulated, counts: total(of) }));
}

/** @param {readonly Bar[]} bars */
function description(bars) {
  const each = bars.map(({ month, isSimulated, counts }) => {
    const work = isSimulated ? " simulated" : "";
    return `${month}${work}: ${share(counts)} kept, ${counts.late} late, ${counts.never} never, ${counts.broken} broken`;
  });
  return `Promises by month. ${each.join("; ")}. The table has the same numbers.`;
}

/**
 * @param {string} name
 * @param {string} path
 */
function pattern(name, path) {
  return svg(
    "pattern",
    { id: `promise-${name}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
    svg("rect", { class: `promise-ground-${name}`, width: 8, height: 8 }),
    svg("path", { class: `promise-line-${name}`, d: path }),
  );
}

/**
 * @param {number} highest
 * @param {number} width
 */
function axis(highest, width) {
  const marks = [...new Set([0, Math.round(highest / 2), highest])];
  return marks.map((mark) => {
    const y = TOP + HEIGHT - (mark / highest) * HEIGHT;
    return svg(
      "g",
      { key: `mark-${mark}` },
      svg("line", { class: "promise-mark", x1: LEFT, x2: width, y1: y, y2: y }),
      svg(
        "text",
        { class: "promise-label", x: LEFT - 8, y: y + 4, "text-anchor": "end" },
        mark.toLocaleString("en"),
      ),
    );
  });
}

/**
 * @param {readonly Bar[]} bars
 * @param {number} start
 * @param {number} highest
 */
function monthBars(bars, start, highest) {
  const { month = "" } = bars[0] ?? {};
  const middle = start + (bars.length * (BAR + SPACE) - SPACE) / 2;
  const bottom = TOP + HEIGHT;
  return svg(
    "g",
    { key: month },
    bars.map((bar, place) => oneBar(bar, start + place * (BAR + SPACE), highest)),
    svg(
      "text",
      { class: "promise-month", x: middle, y: bottom + 34, "text-anchor": "middle" },
      `${monthName(month)} ${month.slice(0, 4)}`,
    ),
  );
}

/**
 * @param {Bar} bar
 * @param {number} x
 * @param {number} highest
 */
function oneBar({ isSimulated, counts }, x, highest) {
  let y = TOP + HEIGHT;
  const parts = OUTCOMES.filter((name) => counts[name]).map((name) => {
    const height = Math.max((counts[name] / highest) * HEIGHT, LEAST);
    y -= height;
    return part(name, counts[name], { x, y, height });
  });
  const middle = x + BAR / 2;
  return svg(
    "g",
    { key: String(isSimulated) },
    parts,
    svg("text", { class: "promise-share", x: middle, y: y - 6, "text-anchor": "middle" }, share(counts)),
    counts.broken > 0 &&
      svg(
        "text",
        { class: "promise-broken", x: middle, y: y - 20, "text-anchor": "middle" },
        `✕ ${counts.broken}`,
      ),
    isSimulated &&
      svg(
        "text",
        { class: "promise-label", x: middle, y: TOP + HEIGHT + 16, "text-anchor": "middle" },
        "sim.",
      ),
  );
}

/**
 * @param {typeof OUTCOMES[number]} name
 * @param {number} number
 * @param {{ x: number, y: number, height: number }} place
 */
function part(name, number, { x, y, height }) {
  return svg(
    "g",
    { key: name },
    svg("title", null, `${name}: ${count(number, "machine")}`),
    svg("rect", {
      class: `promise-part promise-${name}`,
      x,
      y,
      width: BAR,
      height,
      fill: name === "kept" ? null : `url(#promise-${name})`,
    }),
    height >= ROOM_FOR_NUMBER &&
      svg(
        "text",
        {
          class: `promise-number promise-number-${name}`,
          x: x + BAR / 2,
          y: y + height / 2 + 4,
          "text-anchor": "middle",
        },
        number.toLocaleString("en"),
      ),
  );
}

/** Return a swatch for each pattern. */
export function promiseLegend() {
  return OUTCOMES.map((name) =>
    svg(
      "svg",
      { key: name, class: "promise-swatch", width: 18, height: 14, "aria-hidden": "true" },
      svg("rect", {
        class: `promise-part promise-${name}`,
        width: 18,
        height: 14,
        fill: name === "kept" ? null : `url(#promise-${name})`,
      }),
    ),
  );
}
