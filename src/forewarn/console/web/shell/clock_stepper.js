/** Service time in the header. A manual clock can be advanced; a fast or slowed clock shows its speed. */

import { ask } from "../actions/action_dialog.js";
import { ADVANCE } from "../actions/clock_verbs.js";
import { performed } from "../actions/performed.js";
import { dateTime, messageOf } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { place } from "../page/popovers.js";
import { preferences } from "../page/preferences.js";
import { h } from "../page/tree.js";
import { clock, copy } from "../service/connected.js";
import { randomKey } from "../service/operator_api.js";

const STEPS = { "15s": "15 s", "1m": "1 min", "5m": "5 min", "15m": "15 min", "1h": "1 h" };

class ClockStepper extends LiveElement {
  #isBusy = false;

  opened() {
    this.watch(clock, "tick");
    this.watch(preferences, "changed");
    this.watch(copy, "loaded");
  }

  drawn() {
    const [date, ...rest] = dateTime(clock.now()).split(" ");
    const now = h(
      "time",
      { class: "number" },
      h("span", { class: "clock-date" }, `${date} `),
      rest.join(" "),
    );
    if (clock.kind === "manual" && copy.may("run")) return this.#stepper(now);
    return h(
      "span",
      { class: "service-time", title: "Service time" },
      now,
      clock.kind === "manual" && h("span", { class: "badge", "data-tone": "info" }, "manual clock"),
      clock.kind === "slowed" &&
        h(
          "span",
          {
            class: "badge",
            "data-tone": "warn",
            title: "Service time is ahead of the system clock until both agree",
          },
          `${clock.speed} times as fast`,
        ),
      clock.kind === "fast" &&
        h("span", { class: "badge", "data-tone": "info" }, `${clock.speed} times as fast`),
    );
  }

  /** @param {import("../types").Child} now */
  #stepper(now) {
    return [
      h(
        "button",
        {
          type: "button",
          key: "button",
          class: "clock-button",
          popovertarget: "clock-steps",
          title: "Service time (manual clock)",
          "aria-busy": this.#isBusy ? "true" : null,
        },
        now,
        h("span", { class: "badge", "data-tone": "info" }, this.#isBusy ? "advancing …" : "manual clock"),
        h("span", { "aria-hidden": "true" }, "▾"),
        h("span", { class: "visually-hidden" }, "advance"),
      ),
      h(
        "div",
        {
          key: "steps",
          id: "clock-steps",
          class: "panel-popover",
          popover: "auto",
          role: "group",
          "aria-label": "Advance the clock",
          ontoggle: (/** @type {ToggleEvent} */ toggle) => this.#toggled(toggle),
        },
        h("span", { class: "small muted" }, "Advance the clock by"),
        h(
          "div",
          { class: "row" },
          Object.entries(STEPS).map(([by, text]) =>
            h(
              "button",
              {
                type: "button",
                key: by,
                "aria-disabled": this.#isBusy ? "true" : null,
                onclick: () => this.#step(by),
              },
              `+ ${text}`,
            ),
          ),
          h("button", { type: "button", key: "own", onclick: () => this.#own() }, "Other …"),
        ),
      ),
    ];
  }

  get #popover() {
    return /** @type {HTMLElement} */ (this.querySelector("#clock-steps"));
  }

  /** @param {ToggleEvent} toggle */
  #toggled(toggle) {
    if (toggle.newState !== "open") return;
    place(this.#popover, /** @type {HTMLElement} */ (this.querySelector(".clock-button")));
    if (!this.#popover.contains(document.activeElement)) this.#popover.querySelector("button")?.focus();
  }

  #own() {
    this.#popover.hidePopover();
    ask(ADVANCE, null);
  }

  /** @param {string} by */
  async #step(by) {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.redraw();
    try {
      await performed.perform(ADVANCE, null, { by }, { key: randomKey(), isQuiet: true });
      await clock.read();
    } catch (error) {
      performed.refused(`forewarn clock advance ${by}`, messageOf(error));
    }
    this.#isBusy = false;
    this.redraw();
  }
}

define("fw-clock-stepper", ClockStepper);
