/** The notices at the top of an order: failures, unknown steps, external work and broken promises. */

import { commandText } from "../../elements/command_text.js";
import { failedHostSteps, failedSteps, isExternal, isUnknown } from "../../elements/order_facts.js";
import { linkedIds, machineLink } from "../../elements/links.js";
import { time } from "../../elements/times.js";
import { count, span } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../types").Order} Order */
/** @typedef {import("../../types").Record} Record */

const SHOWN = 20;

/** @param {Order} order */
export function failureNotice(order) {
  const failed = failedSteps(order);
  const onHost = failedHostSteps(order);
  const isOpen = !order.ended_at;
  return h(
    "div",
    { class: "notice", "data-tone": "danger", role: "status", key: "failure" },
    h("strong", null, `${count(failed.length + onHost.length, "step")} failed`),
    h(
      "ul",
      { class: "reasons" },
      onHost.map((step) =>
        h(
          "li",
          { key: `host ${step.task}` },
          `${step.task} of `,
          h("span", { class: "name" }, order.host ?? "the host"),
          ": ",
          h("span", { class: "name" }, linkedIds(step.why ?? "unknown reason")),
        ),
      ),
      failed
        .slice(0, SHOWN)
        .map((step) =>
          h(
            "li",
            { key: step.machine },
            machineLink(step.machine, order.project),
            ": ",
            h("span", { class: "name" }, linkedIds(step.why ?? "unknown reason")),
          ),
        ),
      failed.length > SHOWN && h("li", { key: "more" }, `and ${failed.length - SHOWN} more`),
    ),
    isOpen &&
      !order.abandoned_by && [
        h(
          "p",
          null,
          "Retry runs the failed steps again. Abandon gives them up. The events stay listed until an operator does one of the two.",
        ),
        commandText(["order", "retry", order.id]),
        commandText(["order", "abandon", order.id]),
      ],
  );
}

/** Explain steps whose driver does not know their state. @param {Order} order */
export function unknownStepsNotice(order) {
  const steps = [...order.host_steps, ...order.steps].filter(isUnknown).length;
  if (!steps || order.ended_at || order.abandoned_by) return null;
  return h(
    "div",
    { class: "notice", "data-tone": "warn", key: "unknown" },
    h("strong", null, `The state of ${count(steps, "step")} is unknown`),
    h("p", null, "forewarn keeps asking the driver. To stop waiting, abandon the order:"),
    commandText(["order", "abandon", order.id]),
  );
}

/** @param {Order} order */
export function externalWorkNotice(order) {
  if (!isExternal(order) || order.ended_at) return null;
  const isAtWork = [...order.steps, ...order.host_steps].some((step) => step.state === "running");
  return h(
    "section",
    { class: "card", key: "outside", "aria-labelledby": "outside" },
    h("h2", { id: "outside" }, "External work"),
    h(
      "p",
      null,
      isAtWork
        ? "An external program or person does this work and reports the result. The work may proceed now."
        : "An external program or person does this work and reports the result. The work may not begin yet.",
      order.heartbeat_seconds !== null &&
        ` The work fails if no report arrives for ${span(order.heartbeat_seconds)}.`,
    ),
    commandText(["gate", "order", order.id, "--", "./do-the-work.sh"]),
    h("p", { class: "small muted" }, "Or report progress, success or failure yourself:"),
    commandText(["order", "heartbeat", order.id]),
    commandText(["order", "complete", order.id]),
    commandText(["order", "fail", order.id, "--reason", "why"]),
  );
}

/** @param {readonly Record[]} broken */
export function brokenPromisesNotice(broken) {
  if (!broken.length) return null;
  return h(
    "div",
    { class: "notice", "data-tone": "danger", key: "broken" },
    h("strong", null, `${count(broken.length, "promise")} broken`),
    h(
      "ul",
      { class: "reasons" },
      broken.map((record) =>
        h(
          "li",
          { key: record.number },
          h("span", { class: "name" }, linkedIds(record.reason ?? "")),
          record.by && [" (", h("span", { class: "name" }, record.by), ", ", time(record.at), ")"],
        ),
      ),
    ),
  );
}
