/** The reasons for waiting of one event. */

import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").EventDetail} EventDetail */
/** @typedef {import("../../types").Order} Order */
/** @typedef {import("../../types").Waiting} Waiting */

// In these stages each event starts on its own.
const ONE_BY_ONE = ["evacuate", "return"];

/**
 * Return the reasons of an order that apply to one of its events.
 *
 * The event's own missing approval is left out, because the page shows it elsewhere.
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

/** Whether another armed update domain of the group keeps an event from starting. @param {EventDetail} event */
const isKeptAway = (event) =>
  !event.armed_at &&
  !event.started_at &&
  [...copy.events.values()].some(
    (other) => other.group === event.group && other.armed_at && other.update_domain !== event.update_domain,
  );
