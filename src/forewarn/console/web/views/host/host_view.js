import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class HostView extends View {
  drawn() {
    return h("h1", null, "Host");
  }
}

define("fw-host-view", HostView);
