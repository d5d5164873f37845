/** The events of an order, with the delivered notice. */

import { linkedIds } from "../../elements/links.js";
import { badge } from "../../elements/appearance.js";
import { eventCells, notBeforeCell, noticeCell } from "../../elements/event_cells.js";
import { stackingTable } from "../../elements/stacking_table.js";
import { time } from "../../elements/times.js";
import { span } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../types").OrderDetail} OrderDetail */
/** @typedef {import("../../types").EventDetail} EventDetail */

/**
 * @param {OrderDetail} order
 * @param {readonly EventDetail[]} events
 */
export function orderEvents(order, events) {
  return h(
    "section",
    { class: "card", key: "events", "aria-labelledby": "events" },
    h("div", { class: "row" }, h("h2", { id: "events" }, "Events"), noticeSum(order, events)),
    events.length
      ? stackingTable(
          "Events of the order",
          ["Event", "Type", "State", "Machines", "Group", "Not before", "Notice"],
          events.map(row),
        )
      : h("p", { class: "muted" }, "No event has been announced."),
  );
}

/**
 * @param {OrderDetail} order
 * @param {readonly EventDetail[]} events
 */
function noticeSum({ notice }, events) {
  if (!events.some((event) => event.started_at)) return null;
  return h(
    "span",
    { class: "row" },
    notice.least_seconds !== null &&
      h("span", { class: "small muted" }, `shortest notice ${span(notice.least_seconds)}`),
    badge(
      notice.late
        ? broken(notice, "!", `${notice.late} late`)
        : { tone: "calm", glyph: "✓", label: "none late" },
    ),
    badge(
      notice.never
        ? broken(notice, "✕", `${notice.never} ${notice.so_far ? "not" : "never"} notified`)
        : { tone: "calm", glyph: "✓", label: "all notified" },
    ),
  );
}

/**
 * Describe a broken promise of notice. The final verdict comes when the events end.
 *
 * @param {OrderDetail["notice"]} notice
 * @param {string} glyph
 * @param {string} label
 * @returns {import("../../elements/appearance.js").Appearance}
 */
const broken = (notice, glyph, label) =>
  notice.so_far ? { tone: "warn", glyph: "…", label: `${label} so far` } : { tone: "danger", glyph, label };

/** @param {EventDetail} event */
function row(event) {
  return h(
    "tr",
    { key: event.id },
    eventCells(event, [
      event.ended_at && h("div", { class: "small muted" }, time(event.ended_at)),
      event.ended_at && event.why && h("div", { class: "small muted name" }, linkedIds(event.why)),
    ]),
    notBeforeCell(event),
    noticeCell(event),
  );
}
