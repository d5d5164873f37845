/** The group of a machine: its policy, and whether scheduled events are enabled. */

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

const UNTIL_ENABLED =
  "until the first poll, a restart or redeploy starts at once, without notice. Maintenance is always announced.";

/** Labels of policy settings. Other settings are shown by their API names. @type {{ [key: string]: string }} */
const LABELS = {
  approval: "Approval by",
  auto_approve: "Approve automatically",
  budget: "Minimum healthy machines",
  defer: "Deferral",
  freezes_at_once: "Machines frozen at once",
  gang: "Treat update domains together",
};

/** Settings in seconds. */
const DURATIONS = ["defer"];

/** @param {Machine} machine */
export function groupCard(machine) {
  if (!machine.group) {
    return h(
      "section",
      { class: "card" },
      h("h2", null, "Group"),
      h("p", null, "A standalone machine: it receives only its own events."),
      !machine.enabled && h("p", null, "Scheduled events are not enabled yet: ", UNTIL_ENABLED),
    );
  }
  return h("fw-group-card", { key: `group ${machine.group}`, ".group": machine.group });
}

/** Fetches the group itself, because the live copy does not track the incarnation. */
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
        ? [
            "Scheduled events were enabled ",
            countdown(group.enabled_at),
            ". Events are announced with notice.",
          ]
        : ["Scheduled events are not enabled yet: ", UNTIL_ENABLED],
    ),
    h(
      "dl",
      { class: "facts" },
      line("Kind", group.kind),
      line("Update domains", String(group.update_domains)),
      line("Source", sourceWords(group.source)),
      line("Incarnation", String(group.incarnation)),
      Object.entries(group.policy).map(([key, value]) =>
        line(LABELS[key] ?? key.replaceAll("_", " "), formatted(key, value)),
      ),
    ),
  );
}

/**
 * @param {string} key
 * @param {unknown} value
 */
function formatted(key, value) {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (typeof value === "number" && DURATIONS.includes(key)) return value ? span(value) : "none";
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
