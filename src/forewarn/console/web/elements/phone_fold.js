/** Content that is folded on a phone and always visible elsewhere. */

import { h } from "../page/tree.js";

/** @typedef {import("../types").Child} Child */

/**
 * @param {string} label  of the button that unfolds the content
 * @param {Child} content
 * @param {string} [sign]  a note on the button, such as the number of active filters
 */
export const phoneFold = (label, content, sign = "") =>
  h(
    "div",
    { class: "phone-fold", key: `fold ${label}` },
    h(
      "button",
      { type: "button", class: "phone-fold-button", "aria-expanded": "false", onclick: toggle },
      label,
      sign && h("span", { class: "badge" }, sign),
      h("span", { class: "phone-fold-mark", "aria-hidden": "true" }, "▾"),
    ),
    h("div", { class: "phone-fold-content" }, content),
  );

/** @param {MouseEvent} click */
function toggle(click) {
  const button = /** @type {Element} */ (click.currentTarget);
  button.setAttribute("aria-expanded", String(button.getAttribute("aria-expanded") !== "true"));
}
