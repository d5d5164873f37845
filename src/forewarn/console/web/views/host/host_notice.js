/** The notice at the top of a host: lost and its choices, failed but not fenced, or cordoned for an order. */

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
export function hostNotice(host) {
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
    h("h2", { id: "lost" }, "Host lost: choose what to do"),
    h(
      "p",
      null,
      "The host did not return after the work on it",
      backBy && [", expected by ", time(backBy), " (", countdown(backBy), ")"],
      order && [": order ", orderLink(order.id)],
      ". It accepts no machines, and its rollout pauses. If the host returns, the work continues.",
    ),
    choice(
      host,
      "wait",
      "Wait longer",
      "Choose this if you expect the host to return. It gets the same time again, and its machines stay down meanwhile.",
    ),
    choice(
      host,
      "fail",
      "Fail the host",
      "Choose this if the host does not return. Its hook, its driver or you fence it, and then its machines restart on other hosts.",
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
    h("h2", { id: "unfenced" }, "Failed but not fenced"),
    h(
      "p",
      null,
      "The host may still run its machines, so they restart elsewhere only after it is fenced. Order ",
      orderLink(order.id),
      fence.why && [": ", h("span", { class: "name" }, fence.why)],
      ".",
    ),
    choice(
      host,
      "fail",
      "Confirm fencing",
      "Confirm that the host is powered off or isolated, and how. Then its machines restart on other hosts.",
      ["--fenced", "pulled its plug"],
    ),
  );
}

/**
 * @param {Host} host
 * @param {string} verb
 * @param {string} label
 * @param {string} meaning
 * @param {string[]} more  words of the command
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
    ". The host accepts machines again when the work ends.",
  );
}
