/** Tables that scroll where they are too wide, and are stacked on a phone: there each cell says its column's name. */

import { h } from "../page/tree.js";

/** @typedef {import("../types").Child} Child */

/**
 * @param {string} name
 * @param {readonly string[]} columns
 * @param {Child} rows
 * @param {{ caption?: string, isCard?: boolean }} [how]  a caption is read out, and not seen
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
 * A cell that says its column's name where the table is stacked; one without content is left out there.
 *
 * @param {string} name
 * @param {Child} content
 */
export const cell = (name, content) =>
  content === null || content === ""
    ? h("td", { class: "none" }, "–")
    : h("td", { "data-label": name }, h("div", null, content));
