/** Buttons and a menu for the actions on a thing. Buttons exist only for actions that are possible now. */

import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { place } from "../page/popovers.js";
import { copy } from "../service/connected.js";
import { ask } from "./action_dialog.js";
import { verbsFor } from "./verbs.js";

/** @typedef {import("../types").Child} Child */
/** @typedef {import("./verbs.js").Noun} Noun */
/** @typedef {{ verb: import("./verb.js").Verb<any>, whyNot: string | null }} Possible */

const BUTTONS_AT_MOST = 3;

/**
 * Describe the buttons for a thing: one for each frequent action, and a menu for the rest.
 *
 * @param {Noun} noun
 * @param {any} subject
 * @returns {Child}
 */
export function actionButtons(noun, subject) {
  if (subject === undefined || !verbsFor(noun, subject).length) return null;
  const name = subject?.id ?? subject?.name ?? "";
  return h("fw-action-buttons", { key: `actions ${noun} ${name}`, ".noun": noun, ".subject": subject });
}

/**
 * Describe the button of one action, or nothing if the action is not possible now.
 *
 * @param {Noun} noun
 * @param {string} verb
 * @param {any} subject
 * @returns {Child}
 */
export function actionButton(noun, verb, subject) {
  const found = verbsFor(noun, subject).find((each) => each.verb.verb === verb);
  if (!found || found.whyNot) return null;
  return h(
    "button",
    {
      type: "button",
      key: verb,
      class: found.verb.hurts ? "dangerous" : null,
      onclick: () => ask(found.verb, subject),
    },
    `${found.verb.label} …`,
  );
}

let menus = 0;

class ActionButtons extends LiveElement {
  /** @type {Noun} */
  noun = "fleet";
  /** @type {any} */
  #subject = null;
  #menu = `action-menu-${++menus}`;

  get subject() {
    return this.#subject;
  }

  set subject(value) {
    this.#subject = value;
    this.redraw();
  }

  opened() {
    this.watch(copy, "orders", "hosts", "holds");
  }

  drawn() {
    const possible = verbsFor(this.noun, this.subject);
    const buttons = possible
      .filter(({ verb, whyNot }) => verb.isFrequent && !whyNot)
      .slice(0, BUTTONS_AT_MOST);
    const others = possible.filter((each) => !buttons.includes(each));
    return [
      buttons.map(({ verb }) =>
        h(
          "button",
          {
            type: "button",
            key: verb.label,
            class: verb.hurts ? "dangerous" : null,
            title: verb.about,
            onclick: () => ask(verb, this.subject),
          },
          `${verb.label} …`,
        ),
      ),
      others.length
        ? [
            h(
              "button",
              {
                type: "button",
                key: "more",
                class: "menu-button",
                popovertarget: this.#menu,
                "aria-haspopup": "menu",
                "aria-label": buttons.length ? "More actions" : "Actions",
                onkeydown: (/** @type {KeyboardEvent} */ key) => this.#openByKey(key),
              },
              buttons.length ? "More" : "Actions",
              h("span", { "aria-hidden": "true" }, "▾"),
            ),
            this.#list(others),
          ]
        : null,
    ];
  }

  /** @param {Possible[]} others */
  #list(others) {
    return h(
      "div",
      {
        key: "menu",
        id: this.#menu,
        class: "action-menu",
        popover: "auto",
        role: "menu",
        "aria-label": "Actions",
        ontoggle: (/** @type {any} */ toggle) => this.#toggled(toggle),
        onkeydown: (/** @type {KeyboardEvent} */ key) => this.#move(key),
      },
      others.map(({ verb, whyNot }) =>
        h(
          "button",
          {
            type: "button",
            key: verb.label,
            role: "menuitem",
            tabindex: "-1",
            class: verb.hurts && !whyNot ? "quiet hurts" : "quiet",
            "aria-disabled": whyNot ? "true" : null,
            onclick: () => !whyNot && this.#choose(verb),
          },
          h(
            "span",
            { class: "verb" },
            `${verb.label} …`,
            verb.hurts && !whyNot ? h("span", { class: "disturbs" }, " disturbs work") : null,
          ),
          h("span", { class: "hint" }, whyNot ? `Not now: ${whyNot}` : verb.about),
        ),
      ),
    );
  }

  get #popover() {
    return /** @type {HTMLElement} */ (this.querySelector(".action-menu"));
  }

  get #items() {
    return /** @type {HTMLElement[]} */ ([...this.querySelectorAll("[role=menuitem]")]);
  }

  /** @param {import("./verb.js").Verb<any>} verb */
  #choose(verb) {
    this.#popover.hidePopover();
    ask(verb, this.subject);
  }

  /** @param {ToggleEvent} toggle */
  #toggled(toggle) {
    if (toggle.newState !== "open") return;
    place(this.#popover, /** @type {HTMLElement} */ (this.querySelector(".menu-button")));
    // The browser fires this event with a delay: the user may have focused another item meanwhile.
    if (!this.#popover.contains(document.activeElement)) this.#items[0]?.focus();
  }

  /** @param {KeyboardEvent} key */
  #openByKey(key) {
    if (key.key !== "ArrowDown") return;
    key.preventDefault();
    if (!this.#popover.matches(":popover-open")) this.#popover.showPopover();
    this.#items[0]?.focus();
  }

  /** @param {KeyboardEvent} key */
  #move(key) {
    const items = this.#items;
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[key.key];
    if (key.key === "Tab") this.#popover.hidePopover();
    if (to === undefined) return;
    key.preventDefault();
    items.at(to % items.length)?.focus();
  }
}

define("fw-action-buttons", ActionButtons);
