/** What is folded away on a phone, where the things themselves come first; elsewhere it is always shown. */

import { h } from "../page/tree.js";

/** @typedef {import("../types").Child} Child */

/**
 * @param {string} label  of the button that unfolds it
 * @param {Child} content
 * @param {string} [sign]  what the button says besides, as how many filters are set
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
