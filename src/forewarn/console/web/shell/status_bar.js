/** The right side of the header: search, connection, service time, the Hold button and the menu. */

import { ask } from "../actions/action_dialog.js";
import { HOLD } from "../actions/hold_verbs.js";
import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import "./clock_stepper.js";
import "./menu.js";
import { showSearch } from "./search_dialog.js";

const LINKS = {
  live: { tone: "calm", glyph: "●", label: "live" },
  connecting: { tone: "idle", glyph: "○", label: "connecting" },
  lost: { tone: "danger", glyph: "⚠", label: "reconnecting" },
};

class StatusBar extends LiveElement {
  opened() {
    this.watch(copy, "link", "loaded");
  }

  drawn() {
    const link = LINKS[copy.link];
    return [
      h(
        "button",
        {
          type: "button",
          key: "search",
          class: "search-button",
          title: "Search everything (/ or Ctrl-K)",
          onclick: showSearch,
        },
        h("span", { "aria-hidden": "true" }, "⌕"),
        h("span", { class: "search-label" }, "Search"),
      ),
      h(
        "span",
        { class: "badge link-state", "data-tone": link.tone, key: "link", title: copy.trouble || null },
        h("span", { "aria-hidden": "true" }, link.glyph),
        h("span", { class: "link-label" }, link.label),
      ),
      h("fw-clock-stepper", { key: "clock" }),
      copy.may("run") &&
        h(
          "button",
          {
            type: "button",
            key: "hold",
            class: "stop hold-button",
            title: "Stop new announcements and starts",
            onclick: () => ask(HOLD, null),
          },
          "Hold …",
        ),
      h("fw-menu", { key: "menu" }),
    ];
  }
}

define("fw-status-bar", StatusBar);
