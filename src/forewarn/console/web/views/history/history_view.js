import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class HistoryView extends View {
  drawn() {
    return h("h1", null, "History");
  }
}

define("fw-history-view", HistoryView);
