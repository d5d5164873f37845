/** A secret that the server shows once. */

import { copyButton } from "../elements/command_text.js";
import { h } from "../page/tree.js";

/**
 * @param {string} title
 * @param {string} secret
 * @param {string} use  what it is for
 */
export const secretShown = (title, secret, use) => [
  h("h2", { id: "action-question" }, title),
  h(
    "p",
    { id: "action-about", class: "notice", "data-tone": "warn" },
    "It is shown only now: the server keeps no copy that anyone can read. Save it before you close this.",
  ),
  h("div", { class: "command secret" }, h("code", null, secret), copyButton(secret)),
  h("p", null, use),
];
