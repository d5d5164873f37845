/** The group of a machine: what it was promised, and who listens. */

import { groupLink } from "../../elements/links.js";
import { sourceWords } from "../../elements/sources.js";
import { countdown } from "../../elements/times.js";
import { span } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { api, copy } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";

/** @typedef {import("../../types").Machine} Machine */
/** @typedef {import("../../types").Group} Group */

const SILENT =
  "until somebody asks for events, a restart or redeploy starts at once, without notice. Maintenance is announced all the same.";

/** What parts of a policy are called; those that are missing here are shown by their own names. @type {{ [key: string]: string }} */
const TITLES = {
  approval: "Approval by",
  auto_approve: "Approved by itself",
  budget: "Healthy machines it needs",
  defer: "May be deferred by",
  freezes_at_once: "Frozen at once, at most",
  gang: "All domains together",
};

/** Parts that are seconds. */
const SPANS = ["defer"];

/** @param {Machine} machine */
export function groupCard(machine) {
  if (!machine.group) {
    return h(
      "section",
      { class: "card" },
      h("h2", null, "Group"),
      h("p", null, "It stands alone: it is told of its own events only."),
      !machine.enabled && h("p", null, "It does not listen yet: ", SILENT),
    );
  }
  return h("fw-group-card", { key: `group ${machine.group}`, ".group": machine.group });
}

/** Reads the group itself: every event changes its incarnation, which the copy of the fleet does not follow. */
class GroupCard extends LiveElement {
  group = "";
  /** @type {LiveAnswer<Group> | null} */
  #answer = null;

  opened() {
    const name = this.group;
    this.#answer = new LiveAnswer(
      () => api.get("/v1/groups/{name}", { path: { name } }).then(({ group }) => group),
      (record) => record.group === name,
      this.ended,
    );
    this.watch(this.#answer, "changed");
  }

  drawn() {
    const group = this.#answer?.value ?? copy.groups.get(this.group);
    return group ? facts(group) : null;
  }
}

define("fw-group-card", GroupCard);

/** @param {Group} group */
function facts(group) {
  return h(
    "section",
    { class: "card" },
    h("h2", null, "Group ", groupLink(group.name)),
    h(
      "p",
      null,
      group.enabled
        ? ["It listens, since ", countdown(group.enabled_at), ": events are announced to it with notice."]
        : ["No machine of it listens yet: ", SILENT],
    ),
    h(
      "dl",
      { class: "facts" },
      line("Kind", group.kind),
      line("Update domains", String(group.update_domains)),
      line("Source", sourceWords(group.source)),
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
