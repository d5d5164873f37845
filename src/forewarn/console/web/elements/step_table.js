/** Tables of steps, of machines and of hosts alike. */

import { workAppearance } from "./appearance.js";
import { isUnknown } from "./order_facts.js";
import { h } from "../page/tree.js";

/** @typedef {import("../types").Child} Child */
/** @typedef {import("./appearance.js").Appearance} Appearance */

/** How a step looks whose driver cannot tell how it is doing. @type {Appearance} */
const UNKNOWN = { tone: "warn", glyph: "?", label: "running, unknown how far" };

/**
 * @param {string} name
 * @param {readonly string[]} columns
 * @param {Child} rows
 */
export function stepTable(name, columns, rows) {
  return h(
    "div",
    { class: "table-scroll", tabindex: 0, role: "group", "aria-label": name },
    h(
      "table",
      { class: "stacking" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map((column) => h("th", { scope: "col", key: column }, column)),
        ),
      ),
      h("tbody", null, rows),
    ),
  );
}

/** @param {{ state: import("../types").Step["state"], why: string | null }} step */
export const stepAppearance = (step) => (isUnknown(step) ? UNKNOWN : workAppearance(step.state));

/**
 * Count the seconds that a step took; null while it is not over.
 *
 * @param {{ begun_at: string | null, ended_at: string | null }} step
 */
export const took = (step) =>
  step.begun_at && step.ended_at ? (Date.parse(step.ended_at) - Date.parse(step.begun_at)) / 1000 : null;

/**
 * A cell that says its column's name where the table is stacked; one without content is left out there.
 *
 * @param {string} name
 * @param {Child} content
 */
export const cell = (name, content) =>
  content === null || content === ""
    ? h("td", { class: "none" }, "–")
    : h("td", { "data-label": name }, h("div", null, content));
