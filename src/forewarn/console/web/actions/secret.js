/** A secret that the server shows once. */

import { copyButton } from "../elements/command_text.js";
import { h } from "../page/tree.js";

/**
 * @param {string} title
 * @param {string} secret
 * @param {string} use  how to use the secret
 */
export const secretShown = (title, secret, use) => [
  h("h2", { id: "action-question" }, title),
  h(
    "p",
    { id: "action-about", class: "notice", "data-tone": "warn" },
    "Copy the secret now: the console cannot show it again. The server keeps no readable copy.",
  ),
  h("div", { class: "command secret" }, h("code", null, secret), copyButton(secret)),
  h("p", null, use),
];
