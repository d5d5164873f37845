/** The explanation for a caller without the right to a page, with links to other pages. */

import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";

/** @typedef {import("../types").Right} Right */

/**
 * @param {string} title  of the page
 * @param {Right} right  that it needs
 */
export function notForYou(title, right) {
  const { name, role, project } = copy.caller ?? { name: "", role: "viewer", project: null };
  const who = project ? `${role} of project ${project}` : role;
  return h(
    "div",
    { class: "empty" },
    h("h1", null, `${title}: not for your token`),
    h(
      "p",
      null,
      "You are signed in as ",
      h("strong", { class: "name" }, name),
      ` (${who}). `,
      because(right),
    ),
    h(
      "p",
      null,
      project
        ? "The other pages show your machines. Ask an operator if you need more."
        : "Ask an operator if you need it, or sign in with another token.",
    ),
    h(
      "p",
      { class: "row" },
      h("a", { href: address("/fleet") }, project ? "Show my machines" : "Show the fleet"),
      h("a", { href: address("/timeline") }, "Show what is coming"),
    ),
  );
}

/** @param {Right} right */
function because(right) {
  if (right === "survey")
    return "This page shows the whole fleet, with the hosts and machines of every project.";
  if (right === "use") return "This page is for users of a project and for operators.";
  return "This page is for operators.";
}
