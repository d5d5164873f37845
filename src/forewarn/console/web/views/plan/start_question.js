/** The question before a rollout starts: what it touches, when, and what it would break. */

import { commandText } from "../../elements/command_text.js";
import { time } from "../../elements/times.js";
import { simulatedPart } from "../../elements/rollout_words.js";
import { count, listed } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { reachOf } from "./reach.js";

/** @typedef {import("../../types").Rollout} Rollout */

/**
 * @typedef {object} Asked
 * @property {Rollout} plan
 * @property {string[]} command
 * @property {string} note  what has become of the plan meanwhile
 * @property {string} trouble  why it was refused
 * @property {boolean} isBusy
 */

/** @type {{ [action: string]: string }} */
const VERBS = { freeze: "Freeze", reboot: "Reboot", redeploy: "Redeploy" };

/** Announces `confirm` and `dismiss`. */
class StartQuestion extends LiveElement {
  /** @type {Asked | null} */
  #asked = null;

  /** @param {Asked | null} asked */
  set asked(asked) {
    this.#asked = asked;
    this.redraw();
  }

  get asked() {
    return this.#asked;
  }

  connectedCallback() {
    super.connectedCallback();
    this.querySelector("dialog")?.showModal();
  }

  drawn() {
    const asked = this.#asked;
    return h(
      "dialog",
      {
        class: "start-question",
        "aria-labelledby": "start-head",
        oncancel: (/** @type {Event} */ cancel) => {
          cancel.preventDefault();
          this.#tell("dismiss");
        },
      },
      asked && this.#content(asked),
    );
  }

  /** @param {Asked} asked */
  #content({ plan, command, note, trouble, isBusy }) {
    const reach = reachOf(plan.hosts);
    const machines = reach.machines === null ? "the machines" : count(reach.machines, "machine");
    return h(
      "div",
      { class: "stack" },
      h("h2", { id: "start-head" }, `Start this rollout over ${count(plan.hosts.length, "host")}?`),
      h(
        "p",
        null,
        h("strong", null, `${VERBS[plan.action] ?? plan.action} ${machines}`),
        ` on ${listed(plan.hosts, 8)}, in ${count(plan.waves.length, "wave")}. `,
        "The guests of the first wave are told at once where nothing is in the way.",
      ),
      h(
        "dl",
        { class: "facts" },
        fact("Groups", reach.groups === null ? "all on these hosts" : listed(reach.groups, 10) || "none"),
        fact("Projects", listed(reach.projects, 10) || "none"),
        fact("Ends about", plan.ends_at ? time(plan.ends_at) : "cannot be said"),
        plan.warnings.length > 0 && fact("Warnings", plan.warnings.join("; ")),
      ),
      simulatedPart(plan) &&
        h("p", { class: "notice", "data-tone": "info" }, `This is ${simulatedPart(plan)}.`),
      plan.together &&
        h(
          "p",
          { class: "notice", "data-tone": "danger" },
          `Update domains of a group are disturbed together (${plan.together}): a broken promise, and recorded as one.`,
        ),
      note && h("p", { class: "notice", "data-tone": "info", role: "status" }, note),
      trouble && h("p", { class: "notice", "data-tone": "danger", role: "alert" }, trouble),
      h("details", null, h("summary", { class: "small" }, "As a command"), commandText(command)),
      h(
        "div",
        { class: "row end" },
        h("button", { type: "button", onclick: () => this.#tell("dismiss"), autofocus: true }, "Not now"),
        h(
          "button",
          { type: "button", class: "primary", disabled: isBusy, onclick: () => this.#tell("confirm") },
          isBusy ? "Starting …" : `Start on ${count(plan.hosts.length, "host")}`,
        ),
      ),
    );
  }

  /** @param {string} what */
  #tell(what) {
    this.dispatchEvent(new Event(what));
  }
}

/**
 * @param {string} name
 * @param {import("../../types").Child} value
 */
const fact = (name, value) => [h("dt", { key: `${name} name` }, name), h("dd", { key: name }, value)];

define("fw-start-question", StartQuestion);
