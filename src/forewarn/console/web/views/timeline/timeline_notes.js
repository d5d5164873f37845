/** What is said below the timeline: where it shows nothing, or not everything, and which command shows the same. */

import { asCommand } from "../../elements/as_command.js";
import { h } from "../../page/tree.js";
import { instant } from "./time_range.js";

/** @typedef {import("./seen_events.js").SeenEvents} SeenEvents */

/** @param {SeenEvents} events */
export function whatIsMissing(events) {
  if (events.trouble) {
    return h(
      "p",
      { class: "notice", "data-tone": "danger", role: "alert" },
      `Past events cannot be read: ${events.trouble}`,
    );
  }
  if (!events.isCut) return null;
  return h(
    "p",
    { class: "notice", "data-tone": "warn" },
    "There are more past events in this range than can be drawn; the newest are shown. Choose a shorter range.",
  );
}

/**
 * @param {SeenEvents} events
 * @param {string} wanted  what is looked for
 */
export function nothingToSee(events, wanted) {
  if (events.isReading) return h("p", { class: "muted", role: "status" }, "Reading past events …");
  if (wanted) {
    return h(
      "div",
      { class: "empty" },
      h("h2", null, "Nothing in this range is like that"),
      h(
        "p",
        { class: "name" },
        `No event names “${wanted}”. Look for something else, or choose a longer range.`,
      ),
    );
  }
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "Nothing is announced in this range"),
    h(
      "p",
      null,
      "An event appears here when it is announced, and stays until it has ended: with the notice that was promised, and the notice that its machines got. Choose a longer range to see earlier and later events.",
    ),
  );
}

/** @param {import("./time_range.js").TimeRange} range */
export const sameAsCommand = ({ from, to }) =>
  asCommand(["event", "list", "--all", "--notices", "--since", instant(from), "--until", instant(to)]);
