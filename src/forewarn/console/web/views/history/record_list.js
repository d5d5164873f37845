/** Records as a list by day, with links to everything they name. */

import { badge } from "../../elements/appearance.js";
import { eventLink, groupLink, hostLink, linkedIds, machineLink, orderLink } from "../../elements/links.js";
import { kindAppearance } from "../../elements/record_kinds.js";
import { count, dateTime, day, span } from "../../page/formatting.js";
import { preferences } from "../../page/preferences.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Record} Record */
/** A row: a record, and its earlier repetitions, newest first. @typedef {{ record: Record, repeats: Record[] }} Line */

// Repetitions further apart than this have a row of their own, in milliseconds.
const LONGEST_GAP = 10 * 60_000;

/**
 * Draw records, newest first.
 *
 * @param {readonly Record[]} records
 * @param {number | null} at  the number of the linked record
 */
export function recordList(records, at) {
  return days(groupRepeats(records, at)).map(([title, lines]) =>
    h(
      "section",
      { class: "history-day", key: title, "aria-label": title },
      h("h2", { class: "history-date" }, title),
      h(
        "ol",
        { class: "records", reversed: true },
        lines.map((line) => recordLine(line, at)),
      ),
    ),
  );
}

/**
 * Group records that repeat within a day, such as an event that is postponed every few seconds.
 *
 * The row stands at the place of the newest record. Consecutive clock advances by one person share a row, as in
 * `forewarn history`. The linked record always has its own row.
 *
 * @param {readonly Record[]} records  newest first
 * @param {number | null} [at]
 * @returns {Line[]}
 */
export function groupRepeats(records, at = null) {
  /** @type {Line[]} */
  const lines = [];
  /** @type {Map<string, Line>} */
  const newest = new Map();
  for (const record of records) {
    const key = repeatKey(record);
    const line = key === null ? undefined : newest.get(key);
    const isLinked = record.number === at;
    if (line && !isLinked && isRepeat(record, line, lines)) {
      line.repeats.push(record);
      continue;
    }
    const added = { record, repeats: [] };
    lines.push(added);
    if (key !== null && !isLinked) newest.set(key, added);
  }
  return lines;
}

/**
 * Return what repetitions of a record have in common. The numbers and times in their reasons differ.
 *
 * @param {Record} record
 * @returns {string | null}  null if the record has no subject
 */
function repeatKey({ kind, by, project, machine, group, host, event, order, reason }) {
  if (kind === "clock-advanced") return `${kind} ${by}`;
  if (![machine, group, host, event, order].some(Boolean)) return null;
  const text = reason?.replace(/[0-9]+/g, "#") ?? "";
  return JSON.stringify([kind, by, project, machine, group, host, event, order, text]);
}

/**
 * @param {Record} record
 * @param {Line} line
 * @param {readonly Line[]} lines
 */
function isRepeat(record, line, lines) {
  const later = line.repeats.at(-1) ?? line.record;
  if (day(later.at) !== day(record.at)) return false;
  if (record.kind === "clock-advanced") return line === lines.at(-1);
  return Date.parse(later.at) - Date.parse(record.at) <= LONGEST_GAP;
}

/**
 * @param {readonly Line[]} lines
 * @returns {[string, Line[]][]}
 */
function days(lines) {
  /** @type {Map<string, Line[]>} */
  const found = new Map();
  for (const line of lines) {
    const title = day(line.record.at);
    const known = found.get(title);
    if (known) known.push(line);
    else found.set(title, [line]);
  }
  return [...found];
}

/**
 * @param {Line} line
 * @param {number | null} at
 */
function recordLine(line, at) {
  const { record, repeats } = line;
  const isLinked = record.number === at;
  return h(
    "li",
    {
      class: "record",
      // The oldest number stays the same when another repetition arrives.
      key: (repeats.at(-1) ?? record).number,
      "aria-current": isLinked ? "true" : null,
      tabindex: isLinked ? "-1" : null,
    },
    recordTime(record),
    h("span", { class: "record-kind" }, badge(kindAppearance(record.kind))),
    h("span", { class: "record-about" }, about(record)),
    h("span", { class: "record-ids small" }, ids(record)),
    h("div", { class: "record-reason name" }, reason(line)),
    h(
      "span",
      { class: "record-by small" },
      record.by && ["by ", filterLink("by", record.by)],
      record.project && copy.projects.size > 1 && [" in ", filterLink("project", record.project)],
    ),
  );
}

/** @param {Line} line */
const reason = ({ record, repeats }) => [
  linkedIds(record.reason ?? ""),
  repeats.length > 0 && repeated(record, repeats),
];

/**
 * @param {Record} record
 * @param {readonly Record[]} repeats
 */
function repeated(record, repeats) {
  const first = repeats.at(-1) ?? record;
  const seconds = (Date.parse(record.at) - Date.parse(first.at)) / 1000;
  return h(
    "details",
    { class: "record-repeats small", key: "repeats" },
    h(
      "summary",
      null,
      `${count(repeats.length + 1, "time")} in ${span(seconds)}, since ${dateTime(first.at)}`,
    ),
    h(
      "ol",
      { reversed: true },
      repeats.map((each) =>
        h("li", { key: each.number }, recordTime(each), " ", linkedIds(each.reason ?? "")),
      ),
    ),
  );
}

/** @param {Record} record */
function recordTime(record) {
  return h(
    "a",
    {
      class: "record-time number",
      href: address("/history", {}, { at: String(record.number) }),
      title: `${dateTime(record.at, preferences.zone === "utc" ? "local" : "utc")}, record ${record.number}`,
    },
    h("time", { datetime: record.at }, dateTime(record.at)),
    h("span", { class: "visually-hidden" }, `, record ${record.number}`),
  );
}

/** @param {Record} record */
function about(record) {
  return [
    record.machine && h("span", { key: "machine" }, machineLink(record.machine, record.project)),
    !record.machine && record.group && h("span", { key: "group" }, "group ", groupLink(record.group)),
    record.host && h("span", { key: "host" }, "host ", linkedHost(record.host)),
  ];
}

/** @param {Record} record */
function ids(record) {
  return [
    record.event && h("span", { key: "event" }, "event ", eventLink(record.event)),
    record.order && h("span", { key: "order" }, "order ", orderLink(record.order)),
  ];
}

/** @param {string} name */
const linkedHost = (name) => (copy.may("survey") ? hostLink(name) : h("span", { class: "name" }, name));

/**
 * @param {"by" | "project"} field
 * @param {string} value
 */
const filterLink = (field, value) =>
  h("a", { class: "name", href: address("/history", {}, { [field]: value }) }, value);
