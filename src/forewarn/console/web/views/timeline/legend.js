/** What the shapes of the timeline mean. */

import { h, svg } from "../../page/tree.js";

/** @typedef {import("../../types").Child} Child */

/** @type {[string, () => Child][]} */
const ENTRIES = [
  [
    "notice: announced, not yet begun",
    () => svg("rect", { class: "bar-notice", x: 1, y: 3, width: 26, height: 12, fill: "url(#hatch-warn)" }),
  ],
  [
    "impact: machines are disturbed",
    () => svg("rect", { class: "bar-impact", x: 1, y: 3, width: 26, height: 12 }),
  ],
  ["NotBefore", () => svg("path", { class: "mark-not-before", d: "M12 1 v16 M12 1 h7 l-7 4 z" })],
  ["promised notice", () => svg("rect", { class: "bar-promised", x: 1, y: 6, width: 26, height: 6 })],
  [
    "delivered notice",
    () => svg("rect", { class: "bar-delivered", "data-tone": "calm", x: 1, y: 6, width: 26, height: 6 }),
  ],
  ["approval", () => svg("circle", { class: "mark-approval", cx: 14, cy: 9, r: 4.5 })],
  ["deferral", () => svg("path", { class: "mark-deferral", d: "M14 3 l6 6 l-6 6 l-6 -6 z" })],
];

export function legend() {
  return h(
    "ul",
    { class: "timeline-legend small", "aria-label": "Legend" },
    ENTRIES.map(([words, shape]) =>
      h(
        "li",
        { key: words },
        svg(
          "svg",
          { width: 28, height: 18, "aria-hidden": "true", class: "bar", "data-tone": "warn" },
          shape(),
        ),
        words,
      ),
    ),
    h("li", { key: "late" }, h("span", { "aria-hidden": "true" }, "! ✕"), "told late, never told"),
  );
}
