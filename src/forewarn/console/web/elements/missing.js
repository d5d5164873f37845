/** The placeholder of a view while its subject loads, or if it cannot be loaded. */

import { h } from "../page/tree.js";

/**
 * @param {string} title
 * @param {{ trouble: string, isMissing: boolean }} answer
 * @param {{ href: string, label: string }} back
 */
export function notThere(title, answer, back) {
  if (!answer.trouble) {
    return [
      h("h1", null, title),
      h("p", { class: "muted", role: "status", "aria-busy": "true" }, "Loading …"),
    ];
  }
  return [
    h("h1", null, answer.isMissing ? `${title} not found` : title),
    h("p", { class: "notice", "data-tone": "danger", role: "alert" }, answer.trouble),
    h("p", null, h("a", { href: back.href }, back.label)),
  ];
}
