/** Promises by month and project as a table. Counts of problems link to their records. */

import { badge } from "../../elements/appearance.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { bounds, share, total } from "./promise_counts.js";

/** @typedef {import("../../types").PromiseCount} PromiseCount */

/** The record kind of each count. Kept promises have no records. */
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
  ["Project", "project of the machines"],
  ["Work", "real or simulated"],
  ["Kept", "share of the judged machines"],
  ["Machines", "sum of kept, late and never"],
  ["In time", "machines notified in time"],
  ["Late", "machines that could not see the event in time"],
  ["Never", "machines that were never notified"],
  ["Broken", "events whose promise an operator broke"],
  ["Unannounced", "changes made outside forewarn without an event"],
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
  // A project token sees only its own project.
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
    h("th", { scope: "row", colspan: 3 }, "Total"),
    h("td", { class: "number" }, h("strong", null, share(sum))),
    [sum.judged, sum.kept, sum.late, sum.never, sum.broken, sum.unannounced].map((each) =>
      h("td", { class: "number" }, each.toLocaleString("en")),
    ),
  );
}
