/** An event that is listed to guests, in short: what, when, whom it names, and who has approved. */

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
      h("p", { class: "muted small" }, "Names ", h("span", { class: "name" }, listed(event.resources)), "."),
    event.simulated && h("p", { class: "muted small" }, "Simulated: nothing is really done."),
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
  if (event.status !== "Scheduled") return "Started without approval, at its time.";
  if (event.awaits) return ["Not approved. Waiting for ", event.awaits, by.length ? [". So far: ", by] : "."];
  const whom = event.awaited.length ? listed(event.awaited) : "any machine of the group";
  return [
    "Not approved. Waiting for ",
    h("span", { class: "name" }, whom),
    by.length ? [". So far: ", by] : ".",
  ];
}
