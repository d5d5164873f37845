/** The events as a table, for screen readers, printing and phones. */

import { eventCells, notBeforeCell, noticeCell } from "../../elements/event_cells.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { time } from "../../elements/times.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */

const COLUMNS = [
  ...["Event", "Type", "State", "Machines", "Group"],
  ...["Announced", "Not before", "Started", "Ended", "Notice"],
];

/** @param {AnyEvent[]} events */
export const eventTable = (events) =>
  stackingTable("Events", COLUMNS, events.map(row), {
    caption: "Events in this range, newest first",
    isCard: true,
  });

/** @param {AnyEvent} event */
function row(event) {
  return h(
    "tr",
    { key: event.id },
    eventCells(event),
    cell("Announced", time(event.announced_at)),
    notBeforeCell(event),
    cell("Started", time(event.started_at)),
    cell("Ended", time(event.ended_at)),
    noticeCell(event),
  );
}
