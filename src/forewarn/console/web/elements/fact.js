/** One line of a list of facts (`<dl class="facts">`). */

import { h } from "../page/tree.js";

/**
 * Draw a fact; nothing if it has no value.
 *
 * @param {string} term
 * @param {import("../types").Child} value
 * @param {import("../types").Child} [label]  replaces the term, for example with its explanation
 */
export const fact = (term, value, label = term) =>
  value === null || value === undefined || value === ""
    ? null
    : [h("dt", { key: `${term}?` }, label), h("dd", { key: term, class: "name" }, value)];
