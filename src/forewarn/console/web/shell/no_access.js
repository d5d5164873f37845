/** Explains that the caller may not see a view, and links to other views. */

import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";

/** @typedef {import("../types").Right} Right */

/**
 * @param {string} title  of the view
 * @param {Right} right  the missing right
 */
export function noAccess(title, right) {
  const { name, role, project } = copy.caller ?? { name: "", role: "viewer", project: null };
  const who = project ? `${role} of project ${project}` : role;
  return h(
    "div",
    { class: "empty" },
    h("h1", null, `${title}: no access with your token`),
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
        ? "You can see your own machines. If you need more, ask an operator."
        : "If you need access, ask an operator, or sign in with another token.",
    ),
    h(
      "p",
      { class: "row" },
      h("a", { href: address("/fleet") }, project ? "Show my machines" : "Show the fleet"),
      h("a", { href: address("/timeline") }, "Show the timeline"),
    ),
  );
}

/** @param {Right} right */
function because(right) {
  if (right === "survey")
    return "This view shows the whole fleet, with the hosts and machines of every project.";
  if (right === "use") return "This view is for users of a project and for operators.";
  return "This view is for operators.";
}
