/** What is told of an order in words. */

import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { badge, workAppearance } from "./appearance.js";
import { hostLink, machineLink } from "./links.js";

/** @typedef {import("../types").Order} Order */

/**
 * Say what an order does: `maintenance reboot`, `service in place`, `restart`.
 *
 * @param {Order} order
 */
export function orderWords(order) {
  if (order.action === "maintenance" && order.work) return `${order.action} ${order.work}`;
  return order.mode === "in-place" ? `${order.action} in place` : order.action;
}

/**
 * Say what an order is about, as a link. Tenants are not told which host.
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

/** Whether somebody outside works on its machines, or on its host. @param {Order} order */
export const isExternal = (order) => order.driver === "external" || order.host_driver === "external";

/** @param {Order} order */
export const failedSteps = (order) => order.steps.filter((step) => step.state === "failed");

/** @param {Order} order */
export const failedHostSteps = (order) => order.host_steps.filter((step) => step.state === "failed");

/** Whether a driver cannot tell how a step is doing. @param {{ state: string, why: string | null }} step */
export const isUnknown = (step) => step.state === "running" && step.why !== null;

/** @param {Order} order */
const givenUpLabel = (order) =>
  order.state === "cancelled" ? "its host is being let go" : "being abandoned";

/** Say how far an order is, and whether it is being given up. @param {Order} order */
export const stateBadges = (order) => [
  badge(workAppearance(order.state)),
  order.stuck && badge({ tone: "warn", glyph: "!", label: "stuck" }),
  order.abandoned_by && !order.ended_at && badge({ tone: "warn", glyph: "⊘", label: givenUpLabel(order) }),
];

/** @param {Order} order */
export function driverBadge(order) {
  if (isSimulated(order)) return badge({ tone: "info", glyph: "◌", label: "simulated" });
  if (isExternal(order)) return badge({ tone: "move", glyph: "⇄", label: "done outside" });
  return null;
}
