/** Why something waits: shown as the API says it. */

import { h } from "../page/tree.js";
import { countdown, time } from "./times.js";

/**
 * @param {readonly import("../types").Waiting[]} waiting
 * @param {string | null} [until]  when the first of the reasons ends by itself
 */
export function reasons(waiting, until) {
  if (!waiting.length) return null;
  return h(
    "div",
    { class: "notice", "data-tone": "warn" },
    h("strong", null, "Waits"),
    h(
      "ul",
      { class: "reasons" },
      waiting.map((each) => h("li", null, h("span", { class: "name" }, each.what), ": ", each.reason)),
    ),
    until && h("p", { class: "small" }, "until ", time(until), " (", countdown(until), ")"),
  );
}
