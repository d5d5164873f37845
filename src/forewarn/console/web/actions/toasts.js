/** Short messages about the latest actions, with the equivalent commands. */

import { copyButton } from "../elements/command_text.js";
import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { performed } from "./performed.js";

/** @typedef {import("./performed.js").Done} Done */

// Long enough to read the message and reach the button. A message with the pointer or the focus stays.
const SHOWN_FOR = 12_000;
const AT_ONCE = 3;

class Toasts extends LiveElement {
  /** @type {Done[]} */
  #shown = [];

  opened() {
    performed.addEventListener("done", () => this.#done(), { signal: this.ended });
  }

  drawn() {
    return h(
      "div",
      { class: "toasts", role: "status", "aria-live": "polite" },
      this.#shown.map((done) =>
        h(
          "div",
          { class: "toast", key: done.number, "data-tone": done.isGood ? "calm" : "danger" },
          h(
            "p",
            null,
            h("span", { "aria-hidden": "true" }, done.isGood ? "✓ " : "✕ "),
            h("span", { class: "name" }, done.outcome),
          ),
          h(
            "div",
            { class: "row" },
            copyButton(done.command, "Copy command"),
            h(
              "button",
              { type: "button", class: "quiet", onclick: () => this.#hide(done.number) },
              "Dismiss",
            ),
          ),
        ),
      ),
    );
  }

  #done() {
    const done = performed.list[0];
    if (!done || done.isQuiet) return;
    this.#shown = [done, ...this.#shown].slice(0, AT_ONCE);
    this.redraw();
    if (done.isGood) this.#hideLater(done.number);
  }

  /** @param {number} number */
  #hideLater(number) {
    setTimeout(() => {
      if (this.querySelector(".toast:hover, .toast:focus-within")) this.#hideLater(number);
      else this.#hide(number);
    }, SHOWN_FOR);
  }

  /** @param {number} number */
  #hide(number) {
    this.#shown = this.#shown.filter((done) => done.number !== number);
    this.redraw();
  }
}

define("fw-toasts", Toasts);
