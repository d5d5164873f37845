/** Cells for tables of events. */

import { badge } from "./appearance.js";
import { noticeText, progressAppearance, promiseAppearance, promiseBadge, typeBadge } from "./event_facts.js";
import { eventLink, groupLink, machineLink } from "./links.js";
import { cell } from "./stacking_table.js";
import { countdown, startCountdown, time } from "./times.js";
import { h } from "../page/tree.js";

/** @typedef {import("./event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("../types").Child} Child */

const NAMES_SHOWN = 4;

/** The cells for an event's id, type, state and machines. @param {AnyEvent} event @param {Child} [more]  after the state */
export const eventCells = (event, more) => [
  cell("Event", eventLink(event.id)),
  cell("Type", typeBadge(event)),
  cell("State", [
    badge(progressAppearance(event)),
    !event.ended_at &&
      !event.started_at &&
      event.awaits &&
      h("div", { class: "small name" }, `waiting for approval by ${event.awaits}`),
    more,
  ]),
  cell("Machines", machines(event)),
  cell("Group", event.group ? [groupLink(event.group), `, domain ${event.update_domain}`] : "standalone"),
];

/** @param {AnyEvent} event */
function machines(event) {
  const shown = event.resources.slice(0, NAMES_SHOWN);
  const more = event.resources.length - shown.length;
  return [
    shown.map((name, place) => [place > 0 && ", ", machineLink(name, event.project)]),
    more > 0 && ` and ${more} more`,
  ];
}

/** The event's NotBefore, with its distance from now. @param {AnyEvent} event */
export const notBeforeCell = (event) =>
  cell("Not before", [time(event.not_before), h("div", { class: "small muted" }, distanceOf(event))]);

/** The distance from now: to NotBefore for a scheduled event, else from its start or end. @param {AnyEvent} event */
function distanceOf(event) {
  if (event.ended_at) return ["ended ", countdown(event.ended_at)];
  if (event.started_at) return ["started ", countdown(event.started_at)];
  return startCountdown(event.not_before);
}

/** The notice of an event. The text is omitted if it only repeats the badge. @param {AnyEvent} event */
export function noticeCell(event) {
  const text = noticeText(event);
  const isRepeated = text === promiseAppearance(event).label;
  return cell("Notice", [promiseBadge(event), !isRepeated && h("div", { class: "small muted" }, text)]);
}
