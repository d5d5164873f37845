/** At the right of the header: the link to the server, service time, preferences, whoever has signed in. */

import { dateTime } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { preferences } from "../page/preferences.js";
import { h } from "../page/tree.js";
import { clock, copy } from "../service/connected.js";
import { session } from "./session.js";

const LINKS = {
  live: { tone: "calm", glyph: "●", label: "live" },
  connecting: { tone: "idle", glyph: "○", label: "connecting" },
  lost: { tone: "danger", glyph: "⚠", label: "reconnecting" },
};

class StatusBar extends LiveElement {
  opened() {
    this.watch(copy, "link", "loaded");
    this.watch(clock, "tick");
    this.watch(preferences, "changed");
    this.watch(session, "changed");
  }

  drawn() {
    const link = LINKS[copy.link];
    return [
      h(
        "span",
        { class: "badge link-state", "data-tone": link.tone, role: "status", title: copy.trouble || null },
        h("span", { "aria-hidden": "true" }, link.glyph),
        link.label,
      ),
      h(
        "span",
        { class: "service-time", title: "service time" },
        h("time", { class: "number" }, dateTime(clock.now())),
        clock.kind === "manual" && h("span", { class: "badge", "data-tone": "info" }, "manual clock"),
        clock.kind === "fast" && h("span", { class: "badge", "data-tone": "info" }, `× ${clock.speed}`),
      ),
      this.#choice("zone", "Times", preferences.zone, { local: "Local time", utc: "UTC" }),
      this.#choice("theme", "Theme", preferences.theme, { system: "System", light: "Light", dark: "Dark" }),
      this.#caller(),
    ];
  }

  #caller() {
    const caller = copy.caller;
    if (!caller || !session.hasToken) return null;
    const of = caller.project ? ` of ${caller.project}` : "";
    return h(
      "span",
      { class: "caller" },
      h("span", { class: "name", title: `${caller.role}${of}` }, caller.name),
      h("button", { type: "button", class: "quiet", onclick: () => session.signOut() }, "Sign out"),
    );
  }

  /**
   * @param {"zone" | "theme"} name
   * @param {string} label
   * @param {string} chosen
   * @param {{ [value: string]: string }} choices
   */
  #choice(name, label, chosen, choices) {
    return h(
      "select",
      {
        "aria-label": label,
        class: "quiet-select",
        onchange: (/** @type {any} */ change) => preferences.set(name, change.target.value),
      },
      Object.entries(choices).map(([value, text]) =>
        h("option", { value, ".selected": value === chosen }, text),
      ),
    );
  }
}

define("fw-status-bar", StatusBar);
