/** Keyboard shortcuts. Single keys work while no field has the focus. */

import { ask } from "../actions/action_dialog.js";
import { HOLD } from "../actions/hold_verbs.js";
import { preferences } from "../page/preferences.js";
import { address, router } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { showPanel } from "./panel_dialog.js";
import { SECTIONS, sectionRoutes } from "./routes.js";
import { showSearch } from "./search_dialog.js";

// The second key after `g`, usually the first letter. "hosts" has the first letter of "history".
const GO = /** @type {{ [path: string]: string }} */ ({
  "/fleet": "f",
  "/hosts": "h",
  "/timeline": "t",
  "/orders": "o",
  "/rollouts": "r",
  "/history": "i",
  "/promises": "p",
});
// The time for the second key of a shortcut.
const SOON = 1500;

let goneAt = -Infinity;

/** Start to handle shortcuts. */
export function startKeyboard() {
  addEventListener("keydown", (key) => {
    if (isSearch(key)) {
      key.preventDefault();
      showSearch();
      return;
    }
    if (key.defaultPrevented || key.ctrlKey || key.metaKey || key.altKey || !preferences.hasKeys) return;
    if (!copy.caller || isTyping(key) || document.querySelector("dialog[open], :popover-open")) return;
    if (press(key.key)) key.preventDefault();
  });
}

/** Whether the user pressed Ctrl-K, which also works in a field. @param {KeyboardEvent} key */
const isSearch = (key) =>
  (key.ctrlKey || key.metaKey) &&
  !key.altKey &&
  !key.shiftKey &&
  key.key.toLowerCase() === "k" &&
  copy.caller !== null &&
  !document.querySelector("dialog[open]");

/** @param {KeyboardEvent} key */
function isTyping(key) {
  const target = /** @type {HTMLElement} */ (key.target);
  return Boolean(target.closest?.("input, select, textarea, [contenteditable]"));
}

/**
 * @param {string} key
 * @returns {boolean}  whether the key is a shortcut
 */
function press(key) {
  const isSecond = performance.now() - goneAt < SOON;
  goneAt = !isSecond && key === "g" ? performance.now() : -Infinity;
  if (isSecond) return go(key);
  if (key === "?") showKeyboard();
  else if (key === "!" && copy.may("run")) ask(HOLD, null);
  else if (key === "/") showSearch();
  else return false;
  return true;
}

/** @param {string} key */
function go(key) {
  const route = sectionRoutes().find((each) => GO[each.path] === key);
  if (route) router.go(address(route.path));
  return Boolean(route);
}

/** Show the shortcuts. */
export function showKeyboard() {
  showPanel("Keyboard shortcuts", () => [
    h(
      "dl",
      { class: "facts keys" },
      sectionRoutes()
        .filter((route) => SECTIONS.includes(route.path))
        .map((route) => line(["g", GO[route.path] ?? ""], route.title)),
      line(["/", "Ctrl-K"], "Search everything"),
      copy.may("run") ? line(["!"], "Hold new work (with confirmation)") : null,
      line(["Tab", "Enter"], "Reach and press controls; use the arrow keys in a menu"),
      line(["Esc"], "Close a dialog or a menu without acting"),
      line(["?"], "This help"),
    ),
    h("p", { class: "small muted" }, "To turn off single-key shortcuts, use the menu in the header."),
  ]);
}

/**
 * @param {string[]} keys
 * @param {string} text
 */
const line = (keys, text) => [
  h(
    "dt",
    { key: `${keys} key` },
    keys.map((key) => [h("kbd", null, key), " "]),
  ),
  h("dd", { key: `${keys} text` }, text),
];
