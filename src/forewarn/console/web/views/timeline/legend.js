/** The legend of the timeline: colours are event types, shapes are stages of an event. */

import { EVENT_TYPES, typeAppearance } from "../../elements/event_facts.js";
import { h, svg } from "../../page/tree.js";

/** @typedef {import("../../types").Child} Child */

/** @typedef {[string, (tone: string) => Child]} Entry */

/** @type {Entry[]} */
const ENTRIES = [
  [
    "notice: announced, not started",
    (tone) =>
      svg("rect", { class: "bar-notice", x: 1, y: 3, width: 26, height: 12, fill: `url(#hatch-${tone})` }),
  ],
  [
    "impact: machines are disturbed",
    () => svg("rect", { class: "bar-impact", x: 1, y: 3, width: 26, height: 12 }),
  ],
  ["NotBefore", () => svg("path", { class: "mark-not-before", d: "M12 1 v16 M12 1 h7 l-7 4 z" })],
  [
    "promised notice",
    () => svg("rect", { class: "bar-promised", "data-tone": "idle", x: 1, y: 6, width: 26, height: 6 }),
  ],
  [
    "delivered notice",
    () => svg("rect", { class: "bar-delivered", "data-tone": "calm", x: 1, y: 6, width: 26, height: 6 }),
  ],
  ["approval", () => svg("circle", { class: "mark-approval", cx: 14, cy: 9, r: 4.5 })],
  ["deferral", () => svg("path", { class: "mark-deferral", d: "M14 3 l6 6 l-6 6 l-6 -6 z" })],
];

/** @type {Entry} */
const WAVE = [
  "coming wave of a rollout: expected notice and work",
  () => [
    svg("rect", { class: "wave-notice", x: 1, y: 5, width: 16, height: 8, rx: 2 }),
    svg("rect", { class: "wave-work", x: 17, y: 2, width: 10, height: 14, rx: 2 }),
  ],
];

/**
 * @param {object} [shown]
 * @param {readonly string[]} [shown.types]  event types; by default all
 * @param {string} [shown.tone]  the tone of the shapes
 * @param {boolean} [shown.hasWaves]
 */
export function legend({ types = EVENT_TYPES, tone = "idle", hasWaves = false } = {}) {
  return h(
    "ul",
    { class: "timeline-legend small", "aria-label": "Legend" },
    EVENT_TYPES.filter((type) => types.includes(type)).map(typeEntry),
    [...ENTRIES, ...(hasWaves ? [WAVE] : [])].map(([words, shape]) =>
      h(
        "li",
        { key: words },
        svg(
          "svg",
          { width: 28, height: 18, "aria-hidden": "true", class: "bar", "data-tone": tone },
          shape(tone),
        ),
        words,
      ),
    ),
    h("li", { key: "late" }, h("span", { "aria-hidden": "true" }, "! ✕"), "notified late, never notified"),
  );
}

/** @param {import("../../types").EventType} type */
function typeEntry(type) {
  const { tone, glyph, label } = typeAppearance(type);
  return h(
    "li",
    { key: type },
    h("span", { class: "legend-type", "data-tone": tone, "aria-hidden": "true" }, glyph),
    label,
  );
}
