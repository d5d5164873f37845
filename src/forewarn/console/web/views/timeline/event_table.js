/** The same events as a table: for screen readers, for printing, for reading on a phone. */

import { eventCells, notBeforeCell, noticeCell } from "../../elements/event_cells.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { time } from "../../elements/times.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */

const COLUMNS = [
  ...["Event", "Type", "State", "Machines", "Group"],
  ...["Announced", "Not before", "Started", "Left", "Notice"],
];

/** @param {AnyEvent[]} events */
export const eventTable = (events) =>
  stackingTable("Events", COLUMNS, events.map(row), {
    caption: "Events in this range, the newest first",
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
    cell("Left", time(event.ended_at)),
    noticeCell(event),
  );
}
