import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class FleetView extends View {
  drawn() {
    return h("h1", null, "Fleet");
  }
}

define("fw-fleet-view", FleetView);
