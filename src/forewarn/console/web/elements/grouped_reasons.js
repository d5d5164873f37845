/** Why many things wait: each reason once, with everything that waits for it. */

import { count, listed } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { linkedIds } from "./links.js";

/** @typedef {import("../types").Waiting} Waiting */

// Later reasons usually depend on earlier ones.
const MOST_SHOWN = 6;

/** @param {readonly Waiting[]} waiting */
export function groupedReasons(waiting) {
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  for (const { what, reason } of waiting) groups.set(reason, [...(groups.get(reason) ?? []), what]);
  const rows = [...groups].map(([reason, names]) =>
    h("li", { key: reason }, h("strong", { class: "name" }, listed(names, 8)), ": ", linkedIds(reason)),
  );
  return [
    h("ul", { class: "reasons", key: "first" }, rows.slice(0, MOST_SHOWN)),
    rows.length > MOST_SHOWN &&
      h(
        "details",
        { key: "rest" },
        h("summary", { class: "small" }, count(rows.length - MOST_SHOWN, "more reason")),
        h("ul", { class: "reasons" }, rows.slice(MOST_SHOWN)),
      ),
  ];
}

/** @param {readonly string[]} warnings */
export function warningList(warnings) {
  if (!warnings.length) return null;
  return h(
    "section",
    { class: "notice", "data-tone": "warn", "aria-label": "Warnings" },
    h("h3", null, warnings.length === 1 ? "Warning" : `${warnings.length} warnings`),
    h(
      "ul",
      { class: "reasons" },
      warnings.map((warning) => h("li", { key: warning }, warning)),
    ),
  );
}
