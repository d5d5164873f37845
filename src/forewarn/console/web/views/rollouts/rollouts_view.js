import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class RolloutsView extends View {
  drawn() {
    return h("h1", null, "Rollouts");
  }
}

define("fw-rollouts-view", RolloutsView);
