import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";

class TimelineView extends View {
  drawn() {
    return h("h1", null, "Timeline");
  }
}

define("fw-timeline-view", TimelineView);
