/** The same events as a table: for screen readers, for printing, for reading on a phone. */

import { badge } from "../../elements/appearance.js";
import { noticeText, progressAppearance, promiseBadge, typeBadge } from "../../elements/event_facts.js";
import { eventLink, groupLink, machineLink } from "../../elements/links.js";
import { countdown, time } from "../../elements/times.js";
import { cell } from "../../elements/step_table.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */

const NAMES_SHOWN = 4;

/** @param {AnyEvent[]} events */
export function eventTable(events) {
  return h(
    "div",
    { class: "table-scroll card", tabindex: 0, role: "group", "aria-label": "Events" },
    h(
      "table",
      { class: "event-table stacking" },
      h("caption", { class: "visually-hidden" }, "Events in this range, the newest first"),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          [
            "Event",
            "Type",
            "State",
            "Machines",
            "Group",
            "Announced",
            "Not before",
            "Started",
            "Left",
            "Notice",
          ].map((name) => h("th", { scope: "col", key: name }, name)),
        ),
      ),
      h("tbody", null, events.map(row)),
    ),
  );
}

/** @param {AnyEvent} event */
function row(event) {
  return h(
    "tr",
    { key: event.id },
    cell("Event", eventLink(event.id)),
    cell("Type", typeBadge(event)),
    cell("State", [
      badge(progressAppearance(event)),
      !event.ended_at && event.awaits && h("div", { class: "small name" }, `awaits ${event.awaits}`),
    ]),
    cell("Machines", machines(event)),
    cell("Group", event.group ? [groupLink(event.group), `, domain ${event.update_domain}`] : "standalone"),
    cell("Announced", time(event.announced_at)),
    cell("Not before", [
      time(event.not_before),
      h("div", { class: "small muted" }, countdown(event.not_before)),
    ]),
    cell("Started", time(event.started_at)),
    cell("Left", time(event.ended_at)),
    cell("Notice", [promiseBadge(event), h("div", { class: "small muted" }, noticeText(event))]),
  );
}

/** @param {AnyEvent} event */
export function machines(event) {
  const shown = event.resources.slice(0, NAMES_SHOWN);
  const more = event.resources.length - shown.length;
  return [
    shown.map((name, place) => [place > 0 && ", ", machineLink(name, event.project)]),
    more > 0 && ` and ${more} more`,
  ];
}
