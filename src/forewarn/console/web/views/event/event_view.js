import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class EventView extends View {
  drawn() {
    return h("h1", null, "Event");
  }
}

define("fw-event-view", EventView);
