import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class PromisesView extends View {
  drawn() {
    return h("h1", null, "Promises");
  }
}

define("fw-promises-view", PromisesView);
