/** What can be done with an order. */

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

/** Whether an order is open and nobody has given it up. @param {Order} order */
const isKept = (order) => isOpen(order) && !order.abandoned_by;

/** Whether somebody outside is at work on its machines, or on its host itself. @param {Order} order */
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
 * A report of work that is done outside; only an operator's.
 *
 * @param {"complete" | "fail" | "heartbeat"} verb
 * @param {string} label
 * @param {Partial<OrderVerb> & { about: string }} more
 */
function report(verb, label, more) {
  return onOrder(verb, label, {
    right: "run",
    concerns: isUnderWayOutside,
    touches: (order) => ({ summary: "Under way on:", names: machinesIn(order, "running") }),
    ...more,
  });
}

/** @type {OrderVerb[]} */
export const ORDER_VERBS = [
  report("complete", "Report done", {
    about: "The work outside is done: its machines are back, and the next stage goes on.",
    question: (order) => `Is the ${named(order)} done?`,
  }),
  report("heartbeat", "Report still at it", {
    about: "The work outside goes on: long silence counts as a failure.",
    question: (order) => `Does the ${named(order)} go on?`,
    isFrequent: false,
  }),
  report("fail", "Report failed", {
    about: "The work outside has failed: the order waits until somebody retries or abandons it.",
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
    about: "Carries out the failed steps once more.",
    hurts: true,
    concerns: (order) => isKept(order) && order.state === "failed" && isOurs(order),
    touches: (order) => ({
      summary: `${count(machinesIn(order, "failed").length, "failed step")}, of:`,
      names: machinesIn(order, "failed"),
    }),
  }),
  onOrder("abandon", "Abandon", {
    about:
      "Its events leave; what was not done stays undone, and can only be ordered anew. Its driver is asked to call off what still runs.",
    hurts: true,
    concerns: (order) =>
      isKept(order) && (order.state === "failed" || machinesIn(order, "running").length > 0) && isOurs(order),
    touches: (order) => ({
      summary: "Stays undone, or is called off if that can still be done, for:",
      names: ["running", "failed", "waiting"].flatMap((state) => machinesIn(order, state)),
    }),
  }),
  onOrder("cancel", "Cancel", {
    about: "It is not done; its events leave.",
    concerns: (order) => isKept(order) && order.state !== "failed" && isOurs(order),
    whyNot: (order) =>
      order.stages.some((stage) => stage.state === "started")
        ? "it has started: too late to cancel, but it can be abandoned"
        : null,
    doing: () => "Cancel the order",
    touches: (order) => eventsOfOrder(order.id),
  }),
];
