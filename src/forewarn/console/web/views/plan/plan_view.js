import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class PlanView extends View {
  drawn() {
    return h("h1", null, "Plan");
  }
}

define("fw-plan-view", PlanView);
