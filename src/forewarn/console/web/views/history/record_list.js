/** Records as a list, day by day; everything that a record names leads to its page. */

import { badge } from "../../elements/appearance.js";
import { eventLink, groupLink, hostLink, linkedIds, machineLink, orderLink } from "../../elements/links.js";
import { kindAppearance } from "../../elements/record_kinds.js";
import { count, dateTime, day, timeOfDay } from "../../page/formatting.js";
import { preferences } from "../../page/preferences.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Record} Record */
/** @typedef {{ record: Record, times: number, first: Record }} Line */

/**
 * Draw records, newest first.
 *
 * @param {readonly Record[]} records
 * @param {number | null} at  the record that somebody was sent the address of
 */
export function recordList(records, at) {
  return days(folded(records, at)).map(([title, lines]) =>
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
 * Make one line of turns of the clock in a row by one person, as the command does: a rehearsal turns it often.
 *
 * @param {readonly Record[]} records
 * @param {number | null} at
 * @returns {Line[]}
 */
function folded(records, at) {
  /** @type {Line[]} */
  const lines = [];
  for (const record of records) {
    const last = lines.at(-1);
    const isTurn =
      record.kind === "clock-advanced" && last?.record.kind === record.kind && last.record.by === record.by;
    const isSameDay = last && day(last.first.at) === day(record.at);
    if (last && isTurn && isSameDay && record.number !== at && last.first.number !== at) {
      last.times += 1;
      last.first = record;
    } else lines.push({ record, times: 1, first: record });
  }
  return lines;
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
  const { record } = line;
  const isMeant = record.number === at;
  return h(
    "li",
    {
      class: "record",
      key: record.number,
      "aria-current": isMeant ? "true" : null,
      tabindex: isMeant ? "-1" : null,
    },
    h(
      "a",
      {
        class: "record-time number",
        href: address("/history", {}, { at: String(record.number) }),
        title: `${dateTime(record.at, preferences.zone === "utc" ? "local" : "utc")}, record ${record.number}`,
      },
      h("time", { datetime: record.at }, timeOfDay(record.at)),
      h("span", { class: "visually-hidden" }, `, record ${record.number}`),
    ),
    h("span", { class: "record-kind" }, badge(kindAppearance(record.kind))),
    h("span", { class: "record-about" }, about(record)),
    h("span", { class: "record-ids small" }, ids(record)),
    h("span", { class: "record-reason name" }, reason(line)),
    h(
      "span",
      { class: "record-by small" },
      record.by && ["by ", filterLink("by", record.by)],
      record.project && copy.projects.size > 1 && [" in ", filterLink("project", record.project)],
    ),
  );
}

/** @param {Line} line */
function reason({ record, times, first }) {
  const text = linkedIds(record.reason ?? "");
  return times === 1 ? text : [`${count(times, "time")} from ${dateTime(first.at)} on, the last `, text];
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
