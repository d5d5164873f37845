/** A table of orders with their reasons for waiting. */

import { linkedIds, orderLink, rolloutLink } from "../../elements/links.js";
import {
  driverBadge,
  failedSteps,
  orderSubject,
  orderWords,
  stateBadges,
} from "../../elements/order_facts.js";
import { whatWaits } from "../../elements/reasons.js";
import { countdown, time } from "../../elements/times.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Order} Order */

const REASONS_SHOWN = 3;

/**
 * @param {string} caption
 * @param {readonly Order[]} orders
 */
export function orderTable(caption, orders) {
  return stackingTable(caption, ["Order", "Action", "State", "Placed", "Steps", "Details"], orders.map(row));
}

/** @param {Order} order */
function row(order) {
  return h(
    "tr",
    { key: order.id },
    cell("Order", orderLink(order.id)),
    cell("Action", [
      h("div", null, `${orderWords(order)} of `, orderSubject(order)),
      order.rollout &&
        h(
          "div",
          { class: "small muted" },
          "rollout ",
          copy.may("survey") ? rolloutLink(order.rollout) : order.rollout.slice(0, 8),
        ),
    ]),
    cell("State", h("div", { class: "row" }, stateBadges(order), driverBadge(order))),
    cell("Placed", [
      h("div", null, countdown(order.created_at), " by ", h("span", { class: "name" }, order.by)),
      order.reason && h("div", { class: "small muted name" }, linkedIds(order.reason)),
    ]),
    cell("Steps", steps(order)),
    cell("Details", outcome(order)),
  );
}

/** @param {Order} order */
function steps(order) {
  if (!order.steps.length) return "–";
  const done = order.steps.filter((step) => step.state === "done").length;
  return h("span", { class: "number" }, `${done} of ${order.steps.length}`);
}

/** @param {Order} order */
function outcome(order) {
  if (order.ended_at) {
    return [
      h("div", null, "ended ", countdown(order.ended_at)),
      order.why && h("div", { class: "small name" }, linkedIds(order.why)),
    ];
  }
  const failed = failedSteps(order);
  if (failed.length) {
    return h("span", { class: "name" }, `${count(failed.length, "step")} failed: ${failed[0]?.why ?? ""}`);
  }
  const shown = order.waiting.slice(0, REASONS_SHOWN);
  return [
    shown.map((each, place) =>
      h("div", { key: place, class: "small" }, whatWaits(each.what), ": ", linkedIds(each.reason)),
    ),
    order.waiting.length > shown.length &&
      h("div", { class: "small" }, `and ${order.waiting.length - shown.length} more reasons`),
    order.waiting_until &&
      h(
        "div",
        { class: "small muted" },
        "until ",
        time(order.waiting_until),
        " (",
        countdown(order.waiting_until),
        ")",
      ),
    !order.waiting.length && order.why && h("span", { class: "name" }, linkedIds(order.why)),
  ];
}
