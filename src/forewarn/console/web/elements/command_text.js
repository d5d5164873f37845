/** The command that does, or shows, the same as the page; to be copied. */

import { h } from "../page/tree.js";

/**
 * Write words as a shell would take them.
 *
 * @param {readonly string[]} words
 */
export function shellText(words) {
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(" ");
}

/**
 * Show a command with a button that copies it.
 *
 * @param {readonly string[]} words  without `forewarn`
 */
export function commandText(words) {
  const text = shellText(["forewarn", ...words]);
  return h(
    "div",
    { class: "command" },
    h("code", null, text),
    h(
      "button",
      { type: "button", class: "quiet", onclick: (/** @type {Event} */ click) => put(click, text) },
      "Copy",
    ),
  );
}

/**
 * @param {Event} click
 * @param {string} text
 */
async function put(click, text) {
  const button = /** @type {HTMLElement} */ (click.currentTarget ?? click.target);
  await copyText(text);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

/**
 * Put a text on the clipboard; pages without TLS from another machine have no `navigator.clipboard`.
 *
 * @param {string} text
 */
async function copyText(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
