/** The card of an event, and its description for screen readers. */

import { linkedIds } from "../../elements/links.js";
import { badge } from "../../elements/appearance.js";
import {
  eventSentence,
  noticeText,
  progressAppearance,
  promiseBadge,
  typeBadge,
} from "../../elements/event_facts.js";
import { fact } from "../../elements/fact.js";
import { countdown, startCountdown, time } from "../../elements/times.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */

/** @param {AnyEvent} event */
export function eventFacts(event) {
  return [
    h("p", { class: "row" }, typeBadge(event), badge(progressAppearance(event)), promiseBadge(event)),
    h("p", { class: "name" }, h("strong", null, eventSentence(event))),
    event.description && h("p", { class: "small muted name" }, linkedIds(event.description)),
    h(
      "dl",
      { class: "facts small" },
      fact("announced", time(event.announced_at)),
      fact("not before", [
        time(event.not_before),
        !event.started_at && !event.ended_at && [" (", startCountdown(event.not_before), ")"],
      ]),
      event.started_at && fact("started", time(event.started_at)),
      event.ended_at && fact("ended", [time(event.ended_at), toGo(event.ended_at)]),
      fact("notice", noticeText(event)),
      event.awaits && !event.ended_at && fact("waiting for", h("span", { class: "name" }, event.awaits)),
      event.why && fact("reason", linkedIds(event.why)),
    ),
    h("p", { class: "small muted" }, "Press Enter or click to open"),
  ];
}

/** @param {string} at */
const toGo = (at) => [" (", countdown(at), ")"];

/**
 * Describe a bar for screen readers.
 *
 * @param {AnyEvent} event
 * @param {(at: string) => string} written
 */
export function eventWords(event, written) {
  const words = [
    `${event.type}, ${progressAppearance(event).label}: ${eventSentence(event)}`,
    `announced ${written(event.announced_at)}`,
    `not before ${written(event.not_before)}`,
  ];
  if (event.started_at) words.push(`started ${written(event.started_at)}`);
  if (event.ended_at) words.push(`ended ${written(event.ended_at)}`);
  words.push(`notice: ${noticeText(event)}`);
  if (event.awaits && !event.ended_at) words.push(`waiting for ${event.awaits}`);
  return words.join("; ");
}
