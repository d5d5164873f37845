/** Adding a group, changing what is declared of one, and taking one out of the fleet. */

import { groupLink } from "../elements/links.js";
import { count } from "../page/formatting.js";
import { api, copy } from "../service/connected.js";
import { body, differences, filled, NAME, options, typedName } from "./declared_fields.js";
import { put, putNew, remove } from "./verb.js";

/** @typedef {import("../types").Group} Group */
/** @typedef {import("./declared_fields.js").DeclaredField} DeclaredField */

/**
 * A part of what a group asks for.
 *
 * @param {import("./verb.js").Field} field
 * @returns {DeclaredField}
 */
const policy = (field) => ({
  ...field,
  isRare: true,
  within: "policy",
  options: (text) => [
    "--policy",
    `${field.name.replaceAll("_", "-")}=${field.kind === "flag" ? text === "yes" : text}`,
  ],
});

/** @param {string} group */
const machinesOf = (group) => copy.summary?.groups.find((each) => each.name === group)?.machines ?? 0;

/** @type {DeclaredField[]} */
const DECLARED = [
  {
    name: "kind",
    label: "Kind",
    kind: "choice",
    choices: {
      "availability-set": "availability set",
      "scale-set": "scale set: one placement group",
      "cloud-service": "cloud service",
    },
  },
  { name: "update_domains", label: "Update domains", kind: "number", hint: "Left out: one." },
  {
    name: "project",
    label: "Project",
    kind: "text",
    hint: "Left out: default. Another one takes its machines along.",
    suggestions: () => copy.projects.keys(),
    consequence: (project, group) =>
      `${count(machinesOf(group.name), "machine")} of it ${machinesOf(group.name) === 1 ? "moves" : "move"} to project ${project || "default"} with it: the people of ${group.project} no longer see them.`,
  },
  policy({
    name: "approval",
    label: "Approval by",
    kind: "choice",
    value: "any",
    choices: {
      any: "any machine",
      all: "all machines that an event names",
      first: "the first that an event names",
    },
  }),
  policy({
    name: "notice",
    label: "Notice",
    kind: "duration",
    hint: "At least so much of every event, as 1h.",
  }),
  policy({
    name: "terminate_notice",
    label: "Notice before it is terminated",
    kind: "duration",
    hint: "From 5m to 15m.",
  }),
  policy({ name: "degrade_notice", label: "Notice of a degraded host", kind: "duration" }),
  policy({ name: "defer", label: "May be deferred by", kind: "duration", hint: "By a guest, once." }),
  policy({
    name: "budget",
    label: "Healthy machines it needs",
    kind: "number",
    hint: "During maintenance.",
  }),
  policy({
    name: "freezes_at_once",
    label: "Frozen at once, at most",
    kind: "number",
    hint: "Whatever their update domains; 0: those of one domain.",
  }),
  policy({
    name: "auto_approve",
    label: "Approved by itself",
    kind: "flag",
    hint: "Its users' own restarts, redeploys and terminations start at once.",
  }),
  policy({
    name: "gang",
    label: "All domains together",
    kind: "flag",
    hint: "Its update domains may be disturbed together, and none in turn.",
  }),
];

/** @param {Group} group */
const saved = (group) => ["Saved ", groupLink(group.name), "."];

/** @type {import("./verb.js").Verb<null>} */
export const ADD_GROUP = {
  verb: "put",
  label: "Add a group",
  right: "run",
  about: "Declares whom events are delivered to: machines of it see each other's events.",
  question: () => "Add a group?",
  doing: () => "Add",
  fields: () => [NAME, ...filled(DECLARED, null)],
  request: (_, values) =>
    putNew("/v1/groups/{name}", { path: { name: typedName(values) }, body: body(DECLARED, null, values) }),
  command: (_, values) => [
    "group",
    "put",
    typedName(values) || "NAME",
    "--new",
    ...options(DECLARED, null, values),
  ],
  outcome: (answer) => saved(answer.group),
};

/** @type {import("./verb.js").Verb<Group>} */
export const CHANGE_GROUP = {
  verb: "put",
  label: "Change",
  right: "run",
  about: "Changes what is declared of it; what is announced already keeps its notice.",
  question: (group) => `Change group ${group.name}?`,
  doing: () => "Save",
  load: async (group) => {
    const { answer, tag } = await api.getTagged("/v1/groups/{name}", { path: { name: group.name } });
    return { subject: answer.group, tag };
  },
  differences: (group, values) => differences(DECLARED, group, values),
  fields: (group) => filled(DECLARED, group),
  request: (group, values) =>
    put("/v1/groups/{name}", { path: { name: group.name }, body: body(DECLARED, group, values) }),
  command: (group, values) => ["group", "put", group.name, ...options(DECLARED, group, values)],
  outcome: (answer) => saved(answer.group),
};

/** @type {import("./verb.js").Verb<Group>} */
export const DELETE_GROUP = {
  verb: "delete",
  label: "Delete",
  right: "run",
  about: "Takes a group out of the fleet that has no machines.",
  question: (group) => `Delete group ${group.name}?`,
  doing: (group) => `Delete ${group.name}`,
  whyNot: (group) =>
    machinesOf(group.name) ? "it has machines: delete them first, or give them another group" : null,
  request: (group) => remove("/v1/groups/{name}", { path: { name: group.name } }),
  command: (group) => ["group", "delete", group.name],
  outcome: (_, group) => `${group.name} is no longer in the fleet.`,
};
