/** The notes on the timeline: missing events, an empty range, and the equivalent command. */

import { asCommand } from "../../elements/as_command.js";
import { h } from "../../page/tree.js";
import { instant } from "./time_range.js";

/** @typedef {import("./event_range.js").EventRange} EventRange */

/** @param {EventRange} events */
export function missingEvents(events) {
  if (events.trouble) {
    return h(
      "p",
      { class: "notice", "data-tone": "danger", role: "alert" },
      `Cannot load past events: ${events.trouble}`,
    );
  }
  if (!events.isCut) return null;
  return h(
    "p",
    { class: "notice", "data-tone": "warn" },
    "This range has too many past events. Only the newest are shown. Choose a shorter range.",
  );
}

/**
 * @param {EventRange} events
 * @param {string} wanted  the search text
 */
export function emptyRange(events, wanted) {
  if (events.isReading) return h("p", { class: "muted", role: "status" }, "Loading past events …");
  if (wanted) {
    return h(
      "div",
      { class: "empty" },
      h("h2", null, "No matches in this range"),
      h("p", { class: "name" }, `No event matches “${wanted}”. Change the search or choose a longer range.`),
    );
  }
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "No events in this range"),
    h(
      "p",
      null,
      "Events appear here when they are announced, with their promised and delivered notice. Choose a longer range to see earlier and later events.",
    ),
  );
}

/** @param {import("./time_range.js").TimeRange} range */
export const sameAsCommand = ({ from, to }) =>
  asCommand(["event", "list", "--all", "--notices", "--since", instant(from), "--until", instant(to)]);
