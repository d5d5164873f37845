/** One line of a list of facts (`<dl class="facts">`). */

import { h } from "../page/tree.js";

/**
 * Describe a fact; nothing where there is no value.
 *
 * @param {string} term
 * @param {import("../types").Child} value
 * @param {import("../types").Child} [label]  the term, if it explains itself
 */
export const fact = (term, value, label = term) =>
  value === null || value === undefined || value === ""
    ? null
    : [h("dt", { key: `${term}?` }, label), h("dd", { key: term, class: "name" }, value)];
