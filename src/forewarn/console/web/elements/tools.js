/** The filters above a view, each with a label. */

import { router } from "../page/router.js";
import { h } from "../page/tree.js";
import { phoneFold } from "./phone_fold.js";

/** @typedef {import("../types").Child} Child */

// The names of filters in the address.
const FILTERS = ["q", "project", "group", "state"];

/** @param {...Child} controls */
export function tools(...controls) {
  const set = FILTERS.filter((name) => router.query.get(name)).length;
  return phoneFold(
    "Search and filters",
    h("div", { class: "tools", role: "search", "aria-label": "Filters" }, controls),
    set ? `${set} set` : "",
  );
}

/**
 * Draw a search field whose text is in the address.
 *
 * @param {string} label
 */
export function searchTool(label) {
  return named(
    label,
    "q",
    h("input", {
      id: "tool-q",
      type: "search",
      ".value": router.query.get("q") ?? "",
      spellcheck: "false",
      autocomplete: "off",
      oninput: (/** @type {any} */ input) => router.setQuery({ q: input.target.value }),
    }),
  );
}

/**
 * Draw a choice whose value is in the address. A value that is no longer offered stays visible.
 *
 * @param {string} label
 * @param {string} name
 * @param {{ [value: string]: string }} choices
 */
export function choiceTool(label, name, choices) {
  const chosen = router.query.get(name) ?? "";
  const known = chosen in choices ? choices : { ...choices, [chosen]: chosen };
  return selectTool(label, name, chosen, known, (value) =>
    router.setQuery({ [name]: value }, { push: true }),
  );
}

/**
 * @param {string} label
 * @param {string} name
 * @param {string} chosen
 * @param {{ [value: string]: string }} choices
 * @param {(value: string) => void} choose
 */
export function selectTool(label, name, chosen, choices, choose) {
  return named(
    label,
    name,
    h(
      "select",
      { id: `tool-${name}`, onchange: (/** @type {any} */ change) => choose(change.target.value) },
      Object.entries(choices).map(([value, text]) =>
        h("option", { key: value, value, ".selected": value === chosen }, text),
      ),
    ),
  );
}

/**
 * @param {string} label
 * @param {string} name
 * @param {Child} control
 */
const named = (label, name, control) =>
  h("div", { key: name, class: "tool" }, h("label", { for: `tool-${name}` }, label), control);
