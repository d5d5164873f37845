/** The command for the same action or view, to copy. */

import { h } from "../page/tree.js";

/**
 * Quote words for a shell.
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

// The command's default servers.
const DEFAULT_SERVERS = ["http://127.0.0.1:8170", "http://localhost:8170"];

/** Show how to point the command at this server, if it is not a default one. */
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
  // Keep the text node, so that the element can be redrawn meanwhile.
  const textNode = /** @type {ChildNode} */ (button.firstChild);
  textNode.nodeValue = "Copied";
  setTimeout(() => (textNode.nodeValue = label), 1500);
}

/**
 * Copy a text to the clipboard. `navigator.clipboard` is missing without TLS, except on localhost.
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
  // A field outside an open modal dialog cannot be selected.
  (button.closest("dialog") ?? document.body).append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  button.focus();
}
