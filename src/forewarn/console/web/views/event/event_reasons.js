/** The reasons of an order that concern one of its events. */

import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").EventDetail} EventDetail */
/** @typedef {import("../../types").Order} Order */
/** @typedef {import("../../types").Waiting} Waiting */

// In these stages each event starts by itself.
const ONE_BY_ONE = ["evacuate", "return"];

/**
 * List the reasons of an order that concern one of its events.
 *
 * An event does not wait for itself: that its own approval is missing, its page says elsewhere.
 *
 * @param {EventDetail} event
 * @param {Order} order
 * @returns {Waiting[]}
 */
export function reasonsOf(event, order) {
  return order.waiting.filter(({ what }) => {
    if (what === event.id) return !event.awaits;
    if (copy.events.has(what)) return startsWith(event, what, order);
    if (copy.groups.has(what)) return what === event.group && isKeptAway(event);
    if (order.steps.some((step) => step.machine === what)) return event.resources.includes(what);
    return true;
  });
}

/**
 * Whether two scheduled events start together.
 *
 * @param {EventDetail} event
 * @param {string} id
 * @param {Order} order
 */
function startsWith(event, id, order) {
  const other = copy.events.get(id);
  if (event.started_at || other?.started_at || other?.stage !== event.stage) return false;
  const stage = order.stages[event.stage ?? 0];
  return !stage || !ONE_BY_ONE.includes(stage.kind);
}

/** Whether another update domain of its group is armed; an armed event waits for none. @param {EventDetail} event */
const isKeptAway = (event) =>
  !event.armed_at &&
  !event.started_at &&
  [...copy.events.values()].some(
    (other) => other.group === event.group && other.armed_at && other.update_domain !== event.update_domain,
  );
