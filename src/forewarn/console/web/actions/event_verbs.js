/** The actions on an announced event. */

import { eventLink } from "../elements/links.js";
import { listed, shortId } from "../page/formatting.js";
import { copy } from "../service/connected.js";
import { eventsOfOrder } from "./touched.js";
import { post } from "./verb.js";

/** @typedef {import("../types").ListedEvent} ListedEvent */

/**
 * Whether the caller may cancel it: users may only cancel what a user has ordered.
 *
 * @param {{ source: string }} ordered
 */
export const isOurs = (ordered) => copy.may("run") || ordered.source === "User";

/** @param {ListedEvent} event */
const named = (event) => `${event.type} of ${listed(event.resources, 3)}`;

/** @type {import("./verb.js").Verb<ListedEvent>[]} */
export const EVENT_VERBS = [
  {
    verb: "approve",
    label: "Approve",
    right: "use",
    about: "Lets the event start now, before its NotBefore, without waiting for more approvals.",
    isFrequent: true,
    concerns: (event) => !event.ended_at && event.status === "Scheduled",
    whyNot: (event) => (event.approved ? "the event is already approved" : null),
    question: (event) => `Approve ${named(event)}?`,
    doing: () => "Approve",
    touches: (event) => ({
      summary: event.awaited.length
        ? `The event starts before its NotBefore, although these have not answered: ${listed(event.awaited)}. Affected:`
        : "The event starts before its NotBefore, for:",
      names: event.resources,
    }),
    request: (event) => post("/v1/events/{id}/approve", { path: { id: event.id } }),
    command: (event) => ["event", "approve", shortId(event.id)],
    outcome: (_, event) => ["Event ", eventLink(event.id), " is approved."],
  },
  {
    verb: "cancel",
    label: "Cancel",
    right: "use",
    about: "Cancels the whole order, with all its events.",
    isFrequent: true,
    concerns: (event) => !event.ended_at && isOurs(event),
    whyNot: (event) => (event.status === "Started" ? "the event has started: too late to cancel" : null),
    question: (event) => `Cancel ${named(event)}?`,
    doing: () => "Cancel the order and all its events",
    touches: (event) => eventsOfOrder(event.order),
    request: (event) => post("/v1/events/{id}/cancel", { path: { id: event.id } }),
    command: (event) => ["event", "cancel", shortId(event.id)],
    outcome: (_, event) => ["Event ", eventLink(event.id), " is cancelled, with its order."],
  },
];
