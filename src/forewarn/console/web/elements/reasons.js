/** Why an order or event waits. Things with the same reason share a line. */

import { count, listed } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { blockingEvents } from "./blocking_events.js";
import { eventLink, groupLink, linkedIds } from "./links.js";
import { briefTime, countdown, time } from "./times.js";

/** @typedef {import("../types").Waiting} Waiting */
/** @typedef {import("../types").Order} Order */
/** @typedef {import("../types").ListedEvent} ListedEvent */

const NAMES_SHOWN = 3;
const WAITING_SHOWN = 3;

/**
 * @param {readonly Waiting[]} waiting
 * @param {string | null} [until]  when the first reason ends without any action
 * @param {Order} [order]  the waiting order, to name the events that block it
 * @param {string} [about]  the id of the event in view, which is not named again
 */
export function reasons(waiting, until, order, about) {
  if (!waiting.length) return null;
  const unapproved = waiting.filter((each) => awaitsApproval(each));
  const others = waiting.filter((each) => !awaitsApproval(each));
  return h(
    "div",
    { class: "notice", "data-tone": "warn" },
    h("strong", null, "Waiting for"),
    h(
      "ul",
      { class: "reasons" },
      unapproved.length > 0 && approvalLine(unapproved, until ?? null, others.length > 0),
      [...Map.groupBy(others, (each) => each.reason)].map(([reason, alike]) =>
        h(
          "li",
          { key: reason },
          subjects(alike.filter((each) => each.what !== about)),
          linkedIds(reason),
          order && alike.map((each) => blockingEvents(each, order)),
        ),
      ),
    ),
    until &&
      others.length > 0 &&
      h("p", { class: "small" }, "until ", time(until), " (", countdown(until), ")"),
  );
}

/** Whether an event waits for approval or NotBefore. A postponed event has another reason. @param {Waiting} waiting */
function awaitsApproval({ what }) {
  const event = copy.events.get(what);
  return Boolean(event?.awaits && !event.postponed);
}

/**
 * Count the machines of these events that have not approved.
 *
 * @param {readonly Waiting[]} waiting
 * @param {string | null} until
 * @param {boolean} isHindered  whether the order also waits for something else
 */
function approvalLine(waiting, until, isHindered) {
  const events = waiting.flatMap((each) => copy.events.get(each.what) ?? []);
  const orders = new Set(events.map((event) => event.order));
  const announced = [...copy.events.values()].filter(
    (event) => orders.has(event.order) && event.status === "Scheduled",
  );
  const missing = events.reduce((sum, event) => sum + notApproved(event), 0);
  const all = announced.reduce((sum, event) => sum + event.resources.length, 0);
  const latest = [...events.map((event) => event.not_before), until ?? ""].sort().at(-1) ?? "";
  const isOne = all === 1;
  return h(
    "li",
    { key: "approval" },
    isOne
      ? [h("span", { class: "name" }, events[0]?.resources.join(", ")), " has not approved; "]
      : `${missing.toLocaleString("en")} of ${count(all, "machine has", "machines have")} not approved; `,
    isHindered ? "NotBefore is " : "starts ",
    briefTime(latest),
    !isHindered && " at the latest",
    " (",
    countdown(latest),
    ")",
    events.length > 1 &&
      h(
        "details",
        { class: "small" },
        h("summary", null, count(events.length, "event")),
        h(
          "ul",
          { class: "reasons" },
          events.map((event) =>
            h("li", { key: event.id }, whatWaits(event.id), `: waiting for approval by ${event.awaits}`),
          ),
        ),
      ),
  );
}

/** With the policy "all", some machines may already have approved. @param {ListedEvent} event */
const notApproved = (event) => (event.approval === "all" ? event.awaited.length : event.resources.length);

/** @param {readonly Waiting[]} waiting */
function subjects(waiting) {
  if (!waiting.length) return null;
  const more = waiting.length - WAITING_SHOWN;
  return [
    waiting.slice(0, WAITING_SHOWN).map((each, place) => [place > 0 && ", ", whatWaits(each.what)]),
    more > 0 && ` and ${count(more, "more", "more")}`,
    ": ",
  ];
}

/**
 * Name the waiting thing. An event gets a link and its machines.
 *
 * @param {string} what
 */
export function whatWaits(what) {
  const event = copy.events.get(what);
  if (event) {
    return [
      `${event.type} of `,
      h("span", { class: "name" }, listed(event.resources, NAMES_SHOWN)),
      " (",
      eventLink(what),
      ")",
    ];
  }
  return copy.groups.has(what) ? groupLink(what) : h("span", { class: "name" }, what);
}
