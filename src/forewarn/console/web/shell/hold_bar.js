/** The active holds, shown above every view, with buttons to release them. */

import { actionButtons } from "../actions/action_buttons.js";
import { countdown } from "../elements/times.js";
import { count } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";

/** @typedef {import("../types").Hold} Hold */

// More holds of hosts and projects are folded, so that they do not fill the screen.
const IN_SIGHT = 2;

class HoldBar extends LiveElement {
  opened() {
    this.watch(copy, "holds");
  }

  drawn() {
    const holds = copy.holds ?? [];
    const partial = holds.filter((hold) => !isEverywhere(hold));
    return [
      copy.refusedHolds.map(refusal),
      holds.filter(isEverywhere).map(line),
      partial.length <= IN_SIGHT
        ? partial.map(line)
        : h(
            "details",
            { class: "held", "data-tone": "warn", key: "partial" },
            h("summary", null, "■ Held: ", count(partial.length, "hold"), " of hosts and projects"),
            partial.map(line),
          ),
    ];
  }
}

/** @param {Hold} hold */
const isEverywhere = (hold) => hold.host === null && hold.project === null;

/** @param {Hold} hold */
function line(hold) {
  return h(
    "div",
    {
      class: isEverywhere(hold) ? "held everywhere" : "held",
      "data-tone": isEverywhere(hold) ? null : "warn",
      key: hold.id,
      role: "status",
    },
    h(
      "p",
      { class: "name" },
      h("strong", null, h("span", { "aria-hidden": "true" }, "■ "), "Held"),
      ` ${hold.reach}: ${hold.reason} (${hold.by}, `,
      countdown(hold.at),
      ")",
      stillRunning(hold),
      hold.saved ? null : h("em", { title: hold.note }, " in memory only, not saved yet"),
    ),
    actionButtons("hold", hold),
  );
}

/** List the work that a hold could not stop, or not yet. @param {Hold} hold */
function stillRunning(hold) {
  if (!hold.still_running.length) return null;
  /** @param {boolean} late */
  const names = (late) =>
    hold.still_running
      .filter((each) => each.too_late === late)
      .map((each) => each.machine ?? `${each.task} of ${each.host}`);
  const [late, asked] = [names(true), names(false)];
  return [
    late.length ? h("em", null, ` Could not stop: ${late.join(", ")}.`) : null,
    asked.length ? h("em", null, ` Stopping: ${asked.join(", ")}.`) : null,
  ];
}

/** Report a hold that was requested but has no effect. @param {Hold} hold */
function refusal(hold) {
  return h(
    "div",
    { class: "held", "data-tone": "warn", key: hold.id, role: "alert" },
    h(
      "p",
      { class: "name" },
      h("strong", null, "Not held"),
      `: ${hold.reach}, requested by ${hold.by} (${hold.reason}). The server could not save the hold: ${hold.refused}`,
    ),
    actionButtons("hold", hold),
  );
}

define("fw-hold-bar", HoldBar);
