/** What a page says while its subject is read, or if that cannot be. */

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
      h("p", { class: "muted", role: "status", "aria-busy": "true" }, "Reading …"),
    ];
  }
  return [
    h("h1", null, answer.isMissing ? `There is no such ${title.toLowerCase()}` : title),
    h("p", { class: "notice", "data-tone": "danger", role: "alert" }, answer.trouble),
    h("p", null, h("a", { href: back.href }, back.label)),
  ];
}
