/** The head of a view: its path, name, state and actions. */

import { h } from "../page/tree.js";

/** @typedef {import("../types").Child} Child */

/**
 * @typedef {object} PageHead
 * @property {Child} path  links to the containers of the thing
 * @property {Child} heading  the `h1`
 * @property {Child} signs  badges
 * @property {Child} actions  buttons: beside the heading where there is room
 */

/** @param {PageHead} head */
export function pageHead({ path, heading, signs, actions }) {
  return h(
    "header",
    { class: "page-head", key: "head" },
    h("nav", { class: "path small", "aria-label": "Path" }, path),
    h("div", { class: "row page-title" }, heading, signs),
    h("div", { class: "row page-actions" }, actions),
  );
}
