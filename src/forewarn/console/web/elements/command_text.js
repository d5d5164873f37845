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
  return h("div", { class: "command" }, h("code", null, text), copyButton(text));
}

// Where the command looks for a server unless told otherwise.
const DEFAULT_SERVERS = ["http://127.0.0.1:8170", "http://localhost:8170"];

/** Show how the command is told of this server, where it would ask another one. */
export function serverText() {
  if (DEFAULT_SERVERS.includes(location.origin)) return null;
  const text = `export FOREWARN_SERVER=${location.origin}`;
  return h("div", { class: "command", key: "server" }, h("code", null, text), copyButton(text));
}

/**
 * Describe a button that copies a text.
 *
 * @param {string} text
 * @param {string} [label]
 */
export function copyButton(text, label = "Copy") {
  const onclick = (/** @type {Event} */ click) => put(click, text, label);
  return h("button", { type: "button", class: "quiet", onclick }, label);
}

/**
 * @param {Event} click
 * @param {string} text
 * @param {string} label
 */
async function put(click, text, label) {
  const button = /** @type {HTMLElement} */ (click.currentTarget ?? click.target);
  await copyText(text, button);
  // The text node stays, so that the page can be drawn again meanwhile.
  const said = /** @type {ChildNode} */ (button.firstChild);
  said.nodeValue = "Copied";
  setTimeout(() => (said.nodeValue = label), 1500);
}

/**
 * Put a text on the clipboard; pages without TLS from another machine have no `navigator.clipboard`.
 *
 * @param {string} text
 * @param {HTMLElement} button
 */
async function copyText(text, button) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = document.createElement("textarea");
  field.value = text;
  // Beside an open dialog nothing can be selected.
  (button.closest("dialog") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  button.focus();
}
