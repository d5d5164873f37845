/** The effect of a change: each changed field with its old value, its new value and the consequence. */

import { h } from "../page/tree.js";

/**
 * @param {string} title
 * @param {readonly import("./verb.js").Difference[]} differences
 */
export function differenceList(title, differences) {
  return h(
    "section",
    { class: "differences", key: title, "aria-label": title },
    h("p", { class: "differences-title" }, title),
    h(
      "div",
      { role: "status" },
      differences.length ? h("dl", null, differences.map(difference)) : "No changes yet. Edit a field.",
    ),
  );
}

/** @param {import("./verb.js").Difference} difference */
const difference = ({ label, before, after, consequence }) => [
  h("dt", { key: `${label} label` }, label),
  h(
    "dd",
    { key: label },
    h("del", null, before),
    h("span", { "aria-hidden": "true" }, " → "),
    h("span", { class: "visually-hidden" }, " becomes "),
    h("ins", null, after),
    consequence && h("p", { class: "small consequence" }, consequence),
  ),
];
