import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class HostsView extends View {
  drawn() {
    return h("h1", null, "Hosts");
  }
}

define("fw-hosts-view", HostsView);
