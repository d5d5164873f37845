/** Why something waits: shown as the API says it. */

import { listed } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { inTheWay } from "./in_the_way.js";
import { eventLink, groupLink, linkedIds } from "./links.js";
import { countdown, time } from "./times.js";

const NAMES_SHOWN = 3;

/**
 * @param {readonly import("../types").Waiting[]} waiting
 * @param {string | null} [until]  when the first of the reasons ends by itself
 * @param {import("../types").Order} [order]  that waits: then whose events are in its way is said too
 */
export function reasons(waiting, until, order) {
  if (!waiting.length) return null;
  return h(
    "div",
    { class: "notice", "data-tone": "warn" },
    h("strong", null, "Waits"),
    h(
      "ul",
      { class: "reasons" },
      waiting.map((each) =>
        h("li", null, whatWaits(each.what), ": ", linkedIds(each.reason), order && inTheWay(each, order)),
      ),
    ),
    until && h("p", { class: "small" }, "until ", time(until), " (", countdown(until), ")"),
  );
}

/**
 * Name what waits: an event by its link and its machines, for nobody knows ids by heart.
 *
 * @param {string} what
 */
export function whatWaits(what) {
  const event = copy.events.get(what);
  if (event) {
    return [
      `${event.type} of `,
      h("span", { class: "name" }, listed(event.resources, NAMES_SHOWN)),
      " (",
      eventLink(what),
      ")",
    ];
  }
  return copy.groups.has(what) ? groupLink(what) : h("span", { class: "name" }, what);
}
