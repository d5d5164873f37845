import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class OrdersView extends View {
  drawn() {
    return h("h1", null, "Orders");
  }
}

define("fw-orders-view", OrdersView);
