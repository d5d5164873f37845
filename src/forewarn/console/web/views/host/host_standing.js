/** What somebody should know of a host before anything else: that it is lost and what to choose, or for whom it is cordoned. */

import { actionButton } from "../../actions/action_buttons.js";
import { commandText } from "../../elements/command_text.js";
import { orderLink } from "../../elements/links.js";
import { term } from "../../elements/terms.js";
import { countdown, time } from "../../elements/times.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { ordersOn } from "../hosts/host_load.js";

/** @typedef {import("../../types").Host} Host */

/** @param {Host} host */
export function hostStanding(host) {
  if (host.state === "lost") return lost(host);
  if (host.state === "failed") return failed(host);
  return host.cordoned_for ? cordoned(host.cordoned_for) : null;
}

/** @param {Host} host */
function lost(host) {
  const order = ordersOn(host.name).find((each) => each.host_steps.some((step) => step.task === "work"));
  const backBy = order?.host_steps.find((step) => step.task === "work")?.back_by;
  return h(
    "section",
    { class: "notice choices", "data-tone": "danger", key: "standing", "aria-labelledby": "lost" },
    h("h2", { id: "lost" }, "Lost: choose what becomes of it"),
    h(
      "p",
      null,
      "It has not come back from the work on it",
      backBy && [", which was to be over by ", time(backBy), " (", countdown(backBy), ")"],
      order && [": order ", orderLink(order.id)],
      ". It takes no machines, and a rollout that works on it pauses. If it comes back, the work goes on by itself.",
    ),
    choice(
      host,
      "wait",
      "Wait on",
      "You expect it back: it gets as much time again, and its machines stay down so long.",
    ),
    choice(
      host,
      "fail",
      "Fail it",
      "You do not: it is fenced, by its hook, its driver or your word, and then its machines come back on other hosts.",
    ),
  );
}

/** @param {Host} host */
function failed(host) {
  const order = ordersOn(host.name).find((each) => each.action === "fail");
  const fence = order?.host_steps.find((step) => step.task === "fence");
  if (!order || !fence || fence.state === "done" || fence.state === "moot") return null;
  return h(
    "section",
    { class: "notice choices", "data-tone": "danger", key: "standing", "aria-labelledby": "unfenced" },
    h("h2", { id: "unfenced" }, "Failed, and not fenced yet"),
    h(
      "p",
      null,
      "It may still touch its machines, so none of them comes back elsewhere before it is fenced: order ",
      orderLink(order.id),
      fence.why && [": ", h("span", { class: "name" }, fence.why)],
      ".",
    ),
    choice(
      host,
      "fail",
      "Vouch for it",
      "You have seen to it yourself: say how, and its machines come back.",
      ["--fenced", "pulled its plug"],
    ),
  );
}

/**
 * @param {Host} host
 * @param {string} verb
 * @param {string} label
 * @param {string} meaning
 * @param {string[]} more  of the command
 */
function choice(host, verb, label, meaning, more = []) {
  return h(
    "div",
    { class: "choice", key: verb },
    h("div", null, h("strong", null, label), h("p", { class: "small" }, meaning)),
    actionButton("host", verb, host),
    commandText(["host", verb, host.name, ...more]),
  );
}

/** @param {string} id */
function cordoned(id) {
  const order = copy.orders.get(id);
  return h(
    "p",
    { class: "notice", "data-tone": "info", key: "standing" },
    term("cordoned", "Cordoned"),
    " for order ",
    orderLink(id),
    order?.reason && [" (", h("span", { class: "name" }, order.reason), ")"],
    ": it takes machines again when the work on it is over.",
  );
}
