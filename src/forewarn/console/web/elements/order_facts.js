/** Descriptions of orders. */

import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { badge, workAppearance } from "./appearance.js";
import { hostLink, machineLink } from "./links.js";

/** @typedef {import("../types").Order} Order */

/**
 * Describe the action of an order: `maintenance reboot`, `service in place`, `restart`.
 *
 * @param {Order} order
 */
export function orderWords(order) {
  if (order.action === "maintenance" && order.work) return `${order.action} ${order.work}`;
  return order.mode === "in-place" ? `${order.action} in place` : order.action;
}

/**
 * Link the machine or host of an order. Tenants do not see the host.
 *
 * @param {Order} order
 */
export function orderSubject(order) {
  if (order.machine) return machineLink(order.machine, order.project);
  if (!order.host) return "a host";
  return copy.may("survey") ? hostLink(order.host) : h("span", { class: "name" }, order.host);
}

/** @param {Order} order */
export const isSimulated = (order) =>
  order.driver === "simulated" && order.host_steps.every((step) => step.driver === "simulated");

/** Whether an external driver works on its machines or its host. @param {Order} order */
export const isExternal = (order) => order.driver === "external" || order.host_driver === "external";

/** @param {Order} order */
export const failedSteps = (order) => order.steps.filter((step) => step.state === "failed");

/** @param {Order} order */
export const failedHostSteps = (order) => order.host_steps.filter((step) => step.state === "failed");

/** Whether the driver cannot tell the state of a running step. @param {{ state: string, why: string | null }} step */
export const isUnknown = (step) => step.state === "running" && step.why !== null;

/** @param {Order} order */
const givenUpLabel = (order) => (order.state === "cancelled" ? "releasing its host" : "being abandoned");

/** Draw the state of an order, and whether it is stuck or being abandoned. @param {Order} order */
export const stateBadges = (order) => [
  badge(workAppearance(order.state)),
  order.stuck && badge({ tone: "warn", glyph: "!", label: "stuck" }),
  order.abandoned_by && !order.ended_at && badge({ tone: "warn", glyph: "⊘", label: givenUpLabel(order) }),
];

/** @param {Order} order */
export function driverBadge(order) {
  if (isSimulated(order)) return badge({ tone: "info", glyph: "◌", label: "simulated" });
  if (isExternal(order)) return badge({ tone: "move", glyph: "⇄", label: "external" });
  return null;
}
