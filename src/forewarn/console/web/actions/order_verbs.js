/** The actions on an order. */

import { count, shortId } from "../page/formatting.js";
import { orderWords } from "../elements/order_facts.js";
import { isOurs } from "./event_verbs.js";
import { eventsOfOrder } from "./touched.js";
import { option, post, REASON } from "./verb.js";

/** @typedef {import("../types").Order} Order */
/** @typedef {import("./verb.js").Verb<Order>} OrderVerb */

/** @param {Order} order */
const named = (order) => `${orderWords(order)} of ${order.machine ?? order.host ?? shortId(order.id)}`;

/** @param {Order} order */
const isOpen = (order) => !order.ended_at;

/** Whether an order is open and not abandoned. @param {Order} order */
const isKept = (order) => isOpen(order) && !order.abandoned_by;

/** Whether an external driver works on its machines or its host. @param {Order} order */
const isUnderWayOutside = (order) =>
  isOpen(order) &&
  ((order.driver === "external" && order.steps.some((step) => step.state === "running")) ||
    order.host_steps.some((step) => step.driver === "external" && step.state === "running"));

/**
 * @param {Order} order
 * @param {string} state
 */
const machinesIn = (order, state) =>
  order.steps.filter((step) => step.state === state).map((step) => step.machine);

/**
 * @param {"cancel" | "retry" | "abandon" | "complete" | "fail" | "heartbeat"} verb
 * @param {string} label
 * @param {Partial<OrderVerb> & { about: string }} more
 * @returns {OrderVerb}
 */
function onOrder(verb, label, more) {
  return {
    verb,
    label,
    right: "use",
    isFrequent: true,
    question: (order) => `${label} ${named(order)}?`,
    doing: () => label,
    request: (order) => post(`/v1/orders/{id}/${verb}`, { path: { id: order.id } }),
    command: (order) => ["order", verb, shortId(order.id)],
    ...more,
  };
}

/**
 * Declare a report on the work of an external driver. Only operators may report.
 *
 * @param {"complete" | "fail" | "heartbeat"} verb
 * @param {string} label
 * @param {Partial<OrderVerb> & { about: string }} more
 */
function report(verb, label, more) {
  return onOrder(verb, label, {
    right: "run",
    concerns: isUnderWayOutside,
    touches: (order) => ({ summary: "Running on:", names: machinesIn(order, "running") }),
    ...more,
  });
}

/** @type {OrderVerb[]} */
export const ORDER_VERBS = [
  report("complete", "Report done", {
    about: "Reports that the external work is done and its machines are back. The next stage starts.",
    question: (order) => `Is the ${named(order)} done?`,
  }),
  report("heartbeat", "Report still running", {
    about: "Reports that the external work continues. Without reports it counts as failed.",
    question: (order) => `Is the ${named(order)} still running?`,
    isFrequent: false,
  }),
  report("fail", "Report failed", {
    about: "Reports that the external work has failed. The order waits until you retry or abandon it.",
    question: (order) => `Has the ${named(order)} failed?`,
    hurts: true,
    isFrequent: false,
    fields: () => [REASON],
    request: (order, values) =>
      post("/v1/orders/{id}/fail", {
        path: { id: order.id },
        body: /** @type {any} */ (values.reason ? { reason: values.reason } : {}),
      }),
    command: (order, values) => ["order", "fail", shortId(order.id), ...option("--reason", values.reason)],
  }),
  onOrder("retry", "Retry", {
    about: "Runs the failed steps again.",
    hurts: true,
    concerns: (order) => isKept(order) && order.state === "failed" && isOurs(order),
    touches: (order) => ({
      summary: `${count(machinesIn(order, "failed").length, "failed step")}, of:`,
      names: machinesIn(order, "failed"),
    }),
  }),
  onOrder("abandon", "Abandon", {
    about:
      "Removes its events. Steps that are not done stay undone; to do them, place a new order. forewarn asks the driver to cancel running steps.",
    hurts: true,
    concerns: (order) =>
      isKept(order) && (order.state === "failed" || machinesIn(order, "running").length > 0) && isOurs(order),
    touches: (order) => ({
      summary: "Stays undone, or is cancelled if possible, for:",
      names: ["running", "failed", "waiting"].flatMap((state) => machinesIn(order, state)),
    }),
  }),
  onOrder("cancel", "Cancel", {
    about: "Cancels the order and removes its events.",
    concerns: (order) => isKept(order) && order.state !== "failed" && isOurs(order),
    whyNot: (order) =>
      order.stages.some((stage) => stage.state === "started")
        ? "the order has started, too late to cancel: abandon it instead"
        : null,
    doing: () => "Cancel the order",
    touches: (order) => eventsOfOrder(order.id),
  }),
];
