/** Promises by month and project as a table; what went wrong leads to its records. */

import { badge } from "../../elements/appearance.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { bounds, share, total } from "./promise_counts.js";

/** @typedef {import("../../types").PromiseCount} PromiseCount */

/** Which records a count is made of; what was kept has none of its own. */
const RECORDS = /** @type {const} */ ({
  late: "notice-late",
  never: "notice-never",
  broken: "promise-broken",
  unannounced: "unannounced-impact",
});
const SIMULATED = /** @type {const} */ ({ tone: "info", glyph: "◇", label: "simulated" });
const REAL = /** @type {const} */ ({ tone: "calm", glyph: "◆", label: "real" });

/** @param {readonly PromiseCount[]} rows */
export function promiseTable(rows) {
  const inOrder = rows.toSorted((one, other) => keyOf(other).localeCompare(keyOf(one)));
  return h(
    "div",
    { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Promises by month and project" },
    h(
      "table",
      { class: "promise-table" },
      h("caption", { class: "visually-hidden" }, "Promises by month and project"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          HEADS.map(([name, hint]) => h("th", { scope: "col", key: name, title: hint }, name)),
        ),
      ),
      h("tbody", null, inOrder.map(rowOf)),
      rows.length > 1 && h("tfoot", null, sumOf(rows)),
    ),
  );
}

/** @param {PromiseCount} row */
const keyOf = (row) => `${row.month} ${row.project} ${row.simulated}`;

/** @type {readonly (readonly [string, string])[]} */
const HEADS = [
  ["Month", "in UTC and service time"],
  ["Project", "whose machines"],
  ["Work", "whether something was really done"],
  ["Kept", "the share of the machines that were judged"],
  ["Machines", "kept, late and never together"],
  ["In time", "machines that were told in time"],
  ["Late", "machines that could not see the event in time"],
  ["Never", "machines that were not told at all"],
  ["Broken", "events whose promise an operator broke"],
  ["Unannounced", "times that other hands were at a machine, and no event told of it"],
];

/** @param {PromiseCount} row */
function rowOf(row) {
  return h(
    "tr",
    { key: keyOf(row) },
    h("th", { scope: "row" }, row.month),
    h("td", null, projectOf(row.project)),
    h("td", null, badge(row.simulated ? SIMULATED : REAL)),
    h("td", { class: "number" }, h("strong", null, share(row))),
    h("td", { class: "number" }, row.judged.toLocaleString("en")),
    h("td", { class: "number" }, row.kept.toLocaleString("en")),
    h("td", { class: "number" }, linked(row, "late")),
    h("td", { class: "number" }, linked(row, "never")),
    h("td", { class: "number" }, linked(row, "broken")),
    h("td", { class: "number" }, linked(row, "unannounced")),
  );
}

/** @param {string} name */
const projectOf = (name) =>
  h("a", { class: "name", href: address("/promises", {}, { project: name }) }, name);

/**
 * @param {PromiseCount} row
 * @param {keyof typeof RECORDS} name
 */
function linked(row, name) {
  if (!row[name]) return "0";
  // The people of one project see no other: it need not be said.
  const project = copy.caller?.project ? null : row.project;
  const query = { kind: RECORDS[name], ...bounds(row.month), project };
  return h(
    "a",
    {
      href: address("/history", {}, query),
      "aria-label": `${row[name]} ${name} in ${row.month} of ${row.project}`,
    },
    row[name].toLocaleString("en"),
  );
}

/** @param {readonly PromiseCount[]} rows */
function sumOf(rows) {
  const sum = total(rows);
  return h(
    "tr",
    null,
    h("th", { scope: "row", colspan: 3 }, "All of these"),
    h("td", { class: "number" }, h("strong", null, share(sum))),
    [sum.judged, sum.kept, sum.late, sum.never, sum.broken, sum.unannounced].map((each) =>
      h("td", { class: "number" }, each.toLocaleString("en")),
    ),
  );
}
