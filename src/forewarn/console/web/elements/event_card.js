/** A short view of a listed event: its type, time, machines and approvals. */

import { actionButtons } from "../actions/action_buttons.js";
import { listed } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { badge, eventAppearance } from "./appearance.js";
import { eventLink } from "./links.js";
import { countdown, startCountdown, time } from "./times.js";

/** @typedef {import("../types").ListedEvent} ListedEvent */

/** @param {ListedEvent} event */
export function eventCard(event) {
  return h(
    "article",
    { class: "listed-event", key: event.id, "aria-label": `Event ${event.type}` },
    h(
      "div",
      { class: "row" },
      badge(eventAppearance(event)),
      h("strong", null, event.type),
      eventLink(event.id),
    ),
    event.status === "Scheduled"
      ? h(
          "p",
          null,
          "Not before ",
          h("strong", null, startCountdown(event.not_before)),
          h("span", { class: "muted small" }, " (", time(event.not_before), ")"),
        )
      : h("p", null, "Started ", countdown(event.started_at)),
    event.description && h("p", null, event.description),
    h("p", { class: "small" }, approval(event)),
    event.deferred &&
      h(
        "p",
        { class: "small" },
        "Deferred by ",
        h("span", { class: "name" }, event.deferred.by),
        " until ",
        time(event.deferred.until),
      ),
    event.resources.length > 1 &&
      h(
        "p",
        { class: "muted small" },
        "Machines: ",
        h("span", { class: "name" }, listed(event.resources)),
        ".",
      ),
    event.simulated && h("p", { class: "muted small" }, "Simulated: no real machine is touched."),
    actionButtons("event", event),
  );
}

/** @param {ListedEvent} event */
function approval(event) {
  const by = event.approvals.map((each) => [
    h("span", { class: "name" }, each.by),
    " (",
    countdown(each.at),
    ") ",
  ]);
  if (event.approved) return ["Approved by ", by.length ? by : "policy"];
  if (event.status !== "Scheduled") return "Started at NotBefore, without approval.";
  if (event.awaits) return ["Waiting for approval by ", event.awaits, by.length ? [". So far: ", by] : "."];
  const approvers = event.awaited.length ? listed(event.awaited) : "any machine of the group";
  return [
    "Waiting for approval by ",
    h("span", { class: "name" }, approvers),
    by.length ? [". So far: ", by] : ".",
  ];
}
