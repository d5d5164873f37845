/** One line of a list of facts (`<dl class="facts">`). */

import { h } from "../page/tree.js";

/**
 * Describe a fact; nothing where there is no value.
 *
 * @param {string} term
 * @param {import("../types").Child} value
 */
export const fact = (term, value) =>
  value === null || value === undefined || value === ""
    ? null
    : [h("dt", { key: `${term}?` }, term), h("dd", { key: term, class: "name" }, value)];
