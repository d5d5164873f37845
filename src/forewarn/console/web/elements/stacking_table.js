/** Tables that scroll if they are too wide. On a phone, rows are stacked and each cell has its column's name. */

import { h } from "../page/tree.js";

/** @typedef {import("../types").Child} Child */

/**
 * @param {string} name
 * @param {readonly string[]} columns
 * @param {Child} rows
 * @param {{ caption?: string, isCard?: boolean }} [how]  the caption is only for screen readers
 */
export function stackingTable(name, columns, rows, { caption, isCard = false } = {}) {
  return h(
    "div",
    {
      class: isCard ? "table-scroll card" : "table-scroll",
      tabindex: 0,
      role: "group",
      "aria-label": name,
    },
    h(
      "table",
      { class: "stacking" },
      caption && h("caption", { class: "visually-hidden" }, caption),
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

/**
 * A cell with its column's name for the stacked form, which omits empty cells.
 *
 * @param {string} name
 * @param {Child} content
 */
export const cell = (name, content) =>
  content === null || content === ""
    ? h("td", { class: "none" }, "–")
    : h("td", { "data-label": name }, h("div", null, content));
