/** The events that block an order: armed events in other update domains of its groups, with their orders. */

import { listed } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { eventLink, hostLink, orderLink } from "./links.js";

/** @typedef {import("../types").Order} Order */
/** @typedef {import("../types").ListedEvent} ListedEvent */

const NAMES_SHOWN = 3;
// The server's reason names the update domain that the group waits for.
const DOMAIN = /waits? for domain (\d+)/;

/**
 * List the armed events that block a group's other update domains, each with its order.
 *
 * @param {import("../types").Waiting} waiting
 * @param {Order} order
 */
export function blockingEvents(waiting, order) {
  const domain = DOMAIN.exec(waiting.reason)?.[1];
  if (!domain) return null;
  const events = [...copy.events.values()].filter(
    (event) =>
      event.group === waiting.what &&
      event.order !== order.id &&
      event.armed_at &&
      event.update_domain === Number(domain),
  );
  if (!events.length) return null;
  return h(
    "ul",
    { class: "reasons" },
    events.map((event) => h("li", { key: event.id }, named(event))),
  );
}

/** @param {ListedEvent} event */
function named(event) {
  const order = copy.orders.get(event.order);
  const names = listed(event.resources, NAMES_SHOWN);
  return [
    `${event.type} of `,
    h("span", { class: "name" }, names),
    ` (domain ${event.update_domain}, `,
    eventLink(event.id),
    "), order ",
    orderLink(event.order),
    order?.host && [" on ", copy.may("survey") ? hostLink(order.host) : order.host],
  ];
}
