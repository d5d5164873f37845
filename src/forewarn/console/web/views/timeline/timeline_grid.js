/** The axis and the grid lines of the timeline, with the line of now. */

import { timeOfDay } from "../../page/formatting.js";
import { ticks } from "../../page/ticks.js";
import { h, svg } from "../../page/tree.js";

/** @typedef {import("./time_range.js").TimeRange} TimeRange */

// Half the width of a label, in pixels. Labels closer to an edge are omitted.
const HALF_LABEL = 18;
// The width of the label of now, in pixels. Axis labels behind it are omitted.
const NOW_LABEL = 96;

/** @param {{ range: TimeRange, width: number }} picture */
export function scale({ range, width }) {
  const perMillisecond = width / (range.to - range.from);
  return (/** @type {number} */ at) => Math.round((at - range.from) * perMillisecond * 10) / 10;
}

/**
 * @param {{ range: TimeRange, now: number, width: number }} picture
 * @param {(at: number) => number} x
 */
export function grid({ range, now, width }, x) {
  const isSeen = now >= range.from && now <= range.to;
  const marks = ticks(range, apart(range, width));
  const isFree = (/** @type {number} */ at) =>
    !isSeen || at < x(now) - HALF_LABEL || at > x(now) + NOW_LABEL + HALF_LABEL;
  return h(
    "div",
    { class: "timeline-grid", "aria-hidden": "true" },
    svg(
      "svg",
      { class: "timeline-axis", width, height: 28 },
      marks
        .filter((tick) => x(tick.at) >= HALF_LABEL && x(tick.at) <= width - HALF_LABEL && isFree(x(tick.at)))
        .map((tick) =>
          svg(
            "text",
            {
              key: tick.at,
              class: tick.isDay ? "tick day" : "tick",
              x: x(tick.at),
              y: 18,
              "text-anchor": "middle",
            },
            tick.label,
          ),
        ),
    ),
    h(
      "div",
      { class: "timeline-lines" },
      marks.map((tick) =>
        h("i", { key: tick.at, class: tick.isDay ? "line day" : "line", style: { left: `${x(tick.at)}px` } }),
      ),
      isSeen &&
        h(
          "i",
          { key: "now", class: "line now", style: { left: `${x(now)}px` } },
          h("b", null, `now ${timeOfDay(now)}`),
        ),
    ),
  );
}

// The width of a label with its margin, in pixels.
const ROOM = 80;

/**
 * Return the minimum distance of grid lines, in milliseconds.
 *
 * @param {{ from: number, to: number }} range
 * @param {number} width  pixels
 */
const apart = (range, width) => ((range.to - range.from) * ROOM) / Math.max(width, ROOM);
