/** A short view of an open order: its action, requester, progress and reasons for waiting. */

import { actionButtons } from "../actions/action_buttons.js";
import { span } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { hostLink, machineLink, orderLink, rolloutLink } from "./links.js";
import { hostStepNow } from "./host_steps.js";
import { isSimulated, orderWords, stateBadges } from "./order_facts.js";
import { stageWords } from "./work_progress.js";
import { reasons } from "./reasons.js";
import { countdown } from "./times.js";

/** @typedef {import("../types").Order} Order */

/** @param {Order} order */
export function orderCard(order) {
  const begun = order.stages.filter((stage) => stage.state !== "queued").length;
  return h(
    "article",
    { class: "open-order", key: order.id, "aria-label": `Order ${order.action}` },
    h(
      "div",
      { class: "row" },
      stateBadges(order),
      h("strong", null, orderWords(order)),
      order.host && ["of ", hostLink(order.host)],
      order.machine && ["of ", machineLink(order.machine, order.project)],
      orderLink(order.id),
    ),
    h(
      "p",
      { class: "muted small" },
      "placed ",
      countdown(order.created_at),
      " by ",
      h("span", { class: "name" }, order.by),
      order.reason && [": ", h("span", { class: "name" }, order.reason)],
      order.rollout && [", part of rollout ", rolloutLink(order.rollout)],
      order.stages.length > 1 &&
        begun > 0 &&
        `; stage ${begun} of ${order.stages.length}${now(order, begun)}`,
      order.expected_seconds !== null && `; takes about ${span(order.expected_seconds)}`,
      isSimulated(order) && "; simulated: no real machine is touched",
    ),
    reasons(order.waiting, order.waiting_until, order),
    actionButtons("order", order),
  );
}

/**
 * Describe the current stage of an order on a host.
 *
 * @param {Order} order
 * @param {number} begun
 */
function now(order, begun) {
  const stage = order.stages[begun - 1];
  const doing = [stage ? stageWords(stage) : "", hostStepNow(order.host_steps)].filter((each) => each);
  return doing.length ? `: ${doing.join(", ")}` : "";
}
