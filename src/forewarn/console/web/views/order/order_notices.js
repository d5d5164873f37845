/** What somebody should know of an order before anything else: what failed, who works on it, what it breaks. */

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
export function failure(order) {
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
          h("span", { class: "name" }, linkedIds(step.why ?? "no reason is known")),
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
            h("span", { class: "name" }, linkedIds(step.why ?? "no reason is known")),
          ),
        ),
      failed.length > SHOWN && h("li", { key: "more" }, `and ${failed.length - SHOWN} more`),
    ),
    isOpen &&
      !order.abandoned_by && [
        h(
          "p",
          null,
          "A person decides: retry carries the failed steps out once more, abandon gives them up. Until then its events stay listed.",
        ),
        commandText(["order", "retry", order.id]),
        commandText(["order", "abandon", order.id]),
      ],
  );
}

/** What to do about steps whose driver cannot tell how they are doing; what it says stands among the reasons. @param {Order} order */
export function unknown(order) {
  const steps = [...order.host_steps, ...order.steps].filter(isUnknown).length;
  if (!steps || order.ended_at || order.abandoned_by) return null;
  return h(
    "div",
    { class: "notice", "data-tone": "warn", key: "unknown" },
    h("strong", null, `It is unknown how far ${count(steps, "step is", "steps are")}`),
    h("p", null, "The driver is asked again, for as long as it takes. To wait no longer, abandon the order:"),
    commandText(["order", "abandon", order.id]),
  );
}

/** @param {Order} order */
export function outsideWork(order) {
  if (!isExternal(order) || order.ended_at) return null;
  const isAtWork = [...order.steps, ...order.host_steps].some((step) => step.state === "running");
  return h(
    "section",
    { class: "card", key: "outside", "aria-labelledby": "outside" },
    h("h2", { id: "outside" }, "Done outside"),
    h(
      "p",
      null,
      isAtWork
        ? "The work may be done now: somebody outside forewarn does it, and reports how it goes."
        : "Somebody outside forewarn does the work once it may begin, and reports how it goes.",
      order.heartbeat_seconds !== null &&
        ` After ${span(order.heartbeat_seconds)} of silence it is taken for failed.`,
    ),
    commandText(["gate", "order", order.id, "--", "./do-the-work.sh"]),
    h("p", { class: "small muted" }, "Or report by hand: it goes on, it is done, it failed."),
    commandText(["order", "heartbeat", order.id]),
    commandText(["order", "complete", order.id]),
    commandText(["order", "fail", order.id, "--reason", "why"]),
  );
}

/** @param {readonly Record[]} broken */
export function brokenPromises(broken) {
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
