/** The menu in the header: preferences, settings, the commands of this tab, and the caller. */

import { performed } from "../actions/performed.js";
import { commandText } from "../elements/command_text.js";
import { messageOf } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { place } from "../page/popovers.js";
import { preferences } from "../page/preferences.js";
import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { showCommands } from "./commands_panel.js";
import { showKeyboard } from "./keyboard.js";
import { settingsRoutes } from "./routes.js";
import { session } from "./session.js";

/** @typedef {Parameters<typeof preferences.set>[0]} Preference */

const CHOICES = /** @type {{ name: Preference, label: string, choices: { [value: string]: string } }[]} */ ([
  { name: "theme", label: "Theme", choices: { system: "System", light: "Light", dark: "Dark" } },
  { name: "zone", label: "Times", choices: { local: "Local", utc: "UTC" } },
  { name: "density", label: "Density", choices: { roomy: "Roomy", dense: "Dense" } },
  { name: "keys", label: "Single-key shortcuts", choices: { on: "On", off: "Off" } },
]);

class Menu extends LiveElement {
  opened() {
    this.watch(preferences, "changed");
    this.watch(session, "changed");
    this.watch(copy, "loaded");
    this.watch(performed, "done");
  }

  drawn() {
    const caller = copy.caller;
    return [
      h(
        "button",
        { type: "button", key: "button", class: "quiet header-menu", popovertarget: "header-menu" },
        h("span", { "aria-hidden": "true" }, "☰"),
        session.hasToken && caller
          ? [
              h("span", { class: "visually-hidden" }, "Menu of "),
              h("span", { class: "name caller" }, caller.name),
            ]
          : h("span", { class: "menu-label" }, "Menu"),
      ),
      h(
        "div",
        {
          key: "menu",
          id: "header-menu",
          class: "panel-popover stack",
          popover: "auto",
          role: "group",
          "aria-label": "Menu",
          ontoggle: (/** @type {ToggleEvent} */ toggle) => this.#toggled(toggle),
        },
        this.#who(),
        CHOICES.map(({ name, label, choices }) => choice(name, label, choices)),
        h(
          "div",
          { class: "menu-links", key: "links" },
          settingsRoutes().map((route) =>
            h(
              "a",
              { key: route.path, href: address(route.path), onclick: () => this.#popover.hidePopover() },
              route.title,
            ),
          ),
          h(
            "button",
            { type: "button", class: "quiet", onclick: () => this.#leave(showCommands) },
            `Actions of this tab as commands (${performed.list.filter((each) => each.isGood).length})`,
          ),
          h(
            "button",
            { type: "button", class: "quiet", onclick: () => this.#leave(showKeyboard) },
            "Keyboard shortcuts",
          ),
        ),
      ),
    ];
  }

  #who() {
    const caller = copy.caller;
    if (!caller) return null;
    if (!session.hasToken) {
      return h(
        "div",
        { key: "who", class: "notice" },
        h("strong", null, "This server is open"),
        h(
          "p",
          { class: "small" },
          "The server has no tokens yet, so every user of its machine is an operator. To require sign-in, create the first token:",
        ),
        commandText(["token", "create", "--name", "NAME", "--role", "operator"]),
      );
    }
    const of = caller.project ? ` of project ${caller.project}` : "";
    return h(
      "div",
      { key: "who", class: "row who" },
      h(
        "span",
        null,
        h("strong", { class: "name" }, caller.name),
        h("span", { class: "muted" }, ` ${caller.role}${of}`),
      ),
      h("button", { type: "button", onclick: () => this.#signOut() }, "Sign out"),
    );
  }

  async #signOut() {
    try {
      await session.signOut();
    } catch (error) {
      performed.refused("", `The console could not sign you out: ${messageOf(error)}. Try again.`);
    }
  }

  /** @param {() => void} show */
  #leave(show) {
    this.#popover.hidePopover();
    show();
  }

  get #popover() {
    return /** @type {HTMLElement} */ (this.querySelector("#header-menu"));
  }

  /** @param {ToggleEvent} toggle */
  #toggled(toggle) {
    if (toggle.newState !== "open") return;
    place(this.#popover, /** @type {HTMLElement} */ (this.querySelector(".header-menu")));
  }
}

/**
 * @param {Preference} name
 * @param {string} label
 * @param {{ [value: string]: string }} choices
 */
function choice(name, label, choices) {
  return h(
    "fieldset",
    { class: "choice", key: name },
    h("legend", null, label),
    h(
      "div",
      { class: "segments" },
      Object.entries(choices).map(([value, text]) =>
        h(
          "label",
          { key: value },
          h("input", {
            type: "radio",
            name: `preference-${name}`,
            value,
            ".checked": preferences.get(name) === value,
            onchange: () => preferences.set(name, value),
          }),
          h("span", null, text),
        ),
      ),
    ),
  );
}

define("fw-menu", Menu);
