/** What is held, wherever one is on the page, with the button that releases it. */

import { actionButtons } from "../actions/action_buttons.js";
import { countdown } from "../elements/times.js";
import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";

class HoldBar extends LiveElement {
  opened() {
    this.watch(copy, "holds");
  }

  drawn() {
    return (copy.holds ?? []).map((hold) =>
      h(
        "div",
        { class: "hold", key: hold.id, role: "status" },
        h("strong", null, h("span", { "aria-hidden": "true" }, "■ "), "Held"),
        h("span", { class: "name" }, `${hold.reach}: ${hold.reason} (${hold.by}, `, countdown(hold.at), ")"),
        actionButtons("hold", hold),
      ),
    );
  }
}

define("fw-hold-bar", HoldBar);
