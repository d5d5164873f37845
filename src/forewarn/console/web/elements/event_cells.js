/** Cells of tables of events, wherever these stand. */

import { badge } from "./appearance.js";
import { noticeText, progressAppearance, promiseAppearance, promiseBadge, typeBadge } from "./event_facts.js";
import { eventLink, groupLink, machineLink } from "./links.js";
import { cell } from "./stacking_table.js";
import { countdown, startCountdown, time } from "./times.js";
import { h } from "../page/tree.js";

/** @typedef {import("./event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("../types").Child} Child */

const NAMES_SHOWN = 4;

/** What an event is, how far, and for whom. @param {AnyEvent} event @param {Child} [more]  of its state */
export const eventCells = (event, more) => [
  cell("Event", eventLink(event.id)),
  cell("Type", typeBadge(event)),
  cell("State", [
    badge(progressAppearance(event)),
    !event.ended_at &&
      !event.started_at &&
      event.awaits &&
      h("div", { class: "small name" }, `waiting for ${event.awaits}`),
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

/** When it may start, and how far it is from now. @param {AnyEvent} event */
export const notBeforeCell = (event) =>
  cell("Not before", [time(event.not_before), h("div", { class: "small muted" }, distanceOf(event))]);

/** How far an event is from now: an event that started or ended no longer waits for its NotBefore. @param {AnyEvent} event */
function distanceOf(event) {
  if (event.ended_at) return ["ended ", countdown(event.ended_at)];
  if (event.started_at) return ["started ", countdown(event.started_at)];
  return startCountdown(event.not_before);
}

/** What notice it gave; the text is left out where it only repeats the badge. @param {AnyEvent} event */
export function noticeCell(event) {
  const text = noticeText(event);
  const isSaid = text === promiseAppearance(event).label;
  return cell("Notice", [promiseBadge(event), !isSaid && h("div", { class: "small muted" }, text)]);
}
