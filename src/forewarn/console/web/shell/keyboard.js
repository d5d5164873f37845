/** Shortcuts: single keys, while nobody types. */

import { ask } from "../actions/action_dialog.js";
import { HOLD } from "../actions/hold_verbs.js";
import { preferences } from "../page/preferences.js";
import { address, router } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { showPanel } from "./panel_dialog.js";
import { SECTIONS, sectionRoutes } from "./routes.js";
import { showSearch } from "./search_dialog.js";

// The second key after `g`; the first letters of "rollouts" and "promises" are theirs, "history" has its second.
const GO = /** @type {{ [path: string]: string }} */ ({
  "/fleet": "f",
  "/hosts": "h",
  "/timeline": "t",
  "/orders": "o",
  "/rollouts": "r",
  "/history": "i",
  "/promises": "p",
});
// The second key comes soon, or it is a first one.
const SOON = 1500;

let goneAt = -Infinity;

/** Begin to listen. */
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

/** Whether Ctrl-K was pressed, which also works while something is typed. @param {KeyboardEvent} key */
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
 * @returns {boolean}  whether it meant something
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

/** Show what the keys do. */
export function showKeyboard() {
  showPanel("Keyboard", () => [
    h(
      "dl",
      { class: "facts keys" },
      sectionRoutes()
        .filter((route) => SECTIONS.includes(route.path))
        .map((route) => line(["g", GO[route.path] ?? ""], route.title)),
      line(["/", "Ctrl-K"], "Search everything"),
      copy.may("run") ? line(["!"], "Hold: asks first") : null,
      line(["Tab", "Enter"], "Reach and press everything; a menu is walked with the arrows"),
      line(["Esc"], "Close a dialog or a menu, without doing anything"),
      line(["?"], "This help"),
    ),
    h("p", { class: "small muted" }, "Single keys can be turned off in the menu at the top."),
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
