/** Everything in the fleet that needs a person now. */

import { failedHostSteps, failedSteps } from "../../elements/order_facts.js";
import { clock, copy } from "../../service/connected.js";
import { groupKey } from "../../service/machine_shelf.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {import("../../types").Hold} Hold */
/** @typedef {import("../../types").ListedEvent} ListedEvent */
/** @typedef {import("../../types").Order} Order */
/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {{ host: Host } | { order: Order } | { event: ListedEvent } | { hold: Hold } | { rollout: Rollout }} NowItem */
/** @typedef {"failed" | "stuck" | "late" | "held" | "soon"} NowKind */
/** The problem of a group. @typedef {"failed" | "stuck" | "late"} Trouble */

const SOON = 15 * 60_000;
// The server starts an event within seconds of its NotBefore, and the page sees that within a second.
const LATE_AFTER = 10_000;

/** The most severe problem first. */
export const PROBLEMS = /** @type {const} */ (["failed", "stuck", "late"]);

/**
 * List everything that needs a person now.
 *
 * @returns {{ [kind in NowKind]: NowItem[] }}
 */
export function nowItems() {
  const orders = [...copy.orders.values()];
  const hosts = [...(copy.hosts?.values() ?? [])];
  const paused = [...(copy.rollouts?.values() ?? [])].filter((rollout) => rollout.state === "paused");
  return {
    failed: [
      ...hosts.filter(isDown).map((host) => ({ host })),
      ...orders.filter(hasFailed).map((order) => ({ order })),
    ],
    stuck: [
      ...orders.filter(isStuck).map((order) => ({ order })),
      ...hosts.filter((host) => host.reachable === false && !isDown(host)).map((host) => ({ host })),
    ],
    late: lateEvents().map((event) => ({ event })),
    held: [...(copy.holds ?? []).map((hold) => ({ hold })), ...paused.map((rollout) => ({ rollout }))],
    soon: soonEvents().map((event) => ({ event })),
  };
}

/** Return when the next event starts, if one is scheduled. */
export function nextStart() {
  return scheduled()
    .map((event) => event.not_before)
    .sort()
    .at(0);
}

/**
 * Return the groups with problems, by key.
 *
 * @returns {Map<string, Trouble>}
 */
export function groupProblems() {
  /** @type {Map<string, Trouble>} */
  const found = new Map();
  for (const event of lateEvents()) found.set(groupKey(event.group, event.project), "late");
  for (const event of copy.events.values()) {
    const order = copy.orders.get(event.order);
    const trouble = order && problemOf(event, order);
    if (trouble) found.set(groupKey(event.group, event.project), trouble);
  }
  for (const host of copy.hosts?.values() ?? []) {
    if (!isDown(host)) continue;
    for (const machine of copy.machines.onHost(host.name))
      found.set(groupKey(machine.group, machine.project), "failed");
  }
  return found;
}

/**
 * Return the problem of an event's order, if it affects the machines of the event.
 *
 * @param {ListedEvent} event
 * @param {Order} order
 * @returns {Trouble | null}
 */
function problemOf(event, order) {
  const hasFailedStep = failedSteps(order).some((step) => event.resources.includes(step.machine));
  if (order.action === "fail" || hasFailedStep || failedHostSteps(order).length) return "failed";
  return order.stuck ? "stuck" : null;
}

/** @param {Host} host */
const isDown = (host) => host.state === "failed" || host.state === "lost";

/** @param {Order} order */
const hasFailed = (order) =>
  order.state === "failed" || failedSteps(order).length > 0 || failedHostSteps(order).length > 0;

/** @param {Order} order */
const isStuck = (order) => order.stuck && !hasFailed(order);

/** List the events that have not started. */
const scheduled = () =>
  [...copy.events.values()].filter(
    (event) => event.status === "Scheduled" && event.type !== "SpotRebalanceRecommendation",
  );

/** @param {ListedEvent} event */
const untilStart = (event) => Date.parse(event.not_before) - clock.now();

const lateEvents = () =>
  inOrder(scheduled().filter((event) => untilStart(event) < -LATE_AFTER * Math.max(1, clock.speed)));

const soonEvents = () =>
  inOrder(scheduled().filter((event) => untilStart(event) >= 0 && untilStart(event) <= SOON));

/** @param {ListedEvent[]} events */
const inOrder = (events) => events.sort((one, other) => one.not_before.localeCompare(other.not_before));
