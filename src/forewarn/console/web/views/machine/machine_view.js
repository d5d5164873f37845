import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class MachineView extends View {
  drawn() {
    return h("h1", null, "Machine");
  }
}

define("fw-machine-view", MachineView);
