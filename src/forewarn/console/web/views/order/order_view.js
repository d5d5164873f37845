import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class OrderView extends View {
  drawn() {
    return h("h1", null, "Order");
  }
}

define("fw-order-view", OrderView);
