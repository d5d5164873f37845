/** The group of a machine: what it was promised, and who listens. */

import { groupLink } from "../../elements/links.js";
import { countdown } from "../../elements/times.js";
import { span } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Machine} Machine */

/** What parts of a policy are called; those that are missing here are shown by their own names. @type {{ [key: string]: string }} */
const TITLES = {
  approval: "Approval by",
  auto_approve: "Approved by itself",
  budget: "Healthy machines it needs",
  defer: "May be deferred by",
};

/** Parts that are seconds. */
const SPANS = ["defer"];

/** @param {Machine} machine */
export function groupCard(machine) {
  const group = machine.group ? copy.groups.get(machine.group) : null;
  if (!group) {
    return h(
      "section",
      { class: "card" },
      h("h2", null, "Group"),
      h("p", null, "It stands alone: it is told of its own events only."),
    );
  }
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Group ", groupLink(group.name)),
    h(
      "p",
      null,
      group.enabled
        ? ["It listens, since ", countdown(group.enabled_at), ": events are announced to it with notice."]
        : "No machine of it listens yet: what is ordered starts without notice, until one asks for events.",
    ),
    h(
      "dl",
      { class: "facts" },
      line("Kind", group.kind),
      line("Update domains", String(group.update_domains)),
      line("Incarnation", String(group.incarnation)),
      Object.entries(group.policy).map(([key, value]) =>
        line(TITLES[key] ?? key.replaceAll("_", " "), written(key, value)),
      ),
    ),
  );
}

/**
 * @param {string} key
 * @param {unknown} value
 */
function written(key, value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value === "number" && SPANS.includes(key)) return value ? span(value) : "not at all";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

/**
 * @param {string} term
 * @param {string} value
 */
const line = (term, value) => [
  h("dt", { key: `${term}?` }, term),
  h("dd", { key: term, class: "name" }, value),
];
