import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class RolloutView extends View {
  drawn() {
    return h("h1", null, "Rollout");
  }
}

define("fw-rollout-view", RolloutView);
