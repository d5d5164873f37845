/** Add, change and delete groups. */

import { groupLink } from "../elements/links.js";
import { count } from "../page/formatting.js";
import { api, copy } from "../service/connected.js";
import { body, differences, filled, NAME, options, typedName } from "./declared_fields.js";
import { put, putNew, remove } from "./verb.js";

/** @typedef {import("../types").Group} Group */
/** @typedef {import("./declared_fields.js").DeclaredField} DeclaredField */

/**
 * Declare a field of a group's policy.
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
  { name: "update_domains", label: "Update domains", kind: "number", hint: "If omitted, 1." },
  {
    name: "project",
    label: "Project",
    kind: "text",
    hint: "If omitted, default. The group's machines move with it to another project.",
    suggestions: () => copy.projects.keys(),
    consequence: (project, group) =>
      `${count(machinesOf(group.name), "machine")} of the group ${machinesOf(group.name) === 1 ? "moves" : "move"} to project ${project || "default"} with it: users of ${group.project} no longer see them.`,
  },
  policy({
    name: "approval",
    label: "Approval by",
    kind: "choice",
    value: "any",
    choices: {
      any: "any machine",
      all: "all machines that the event names",
      first: "the first machine that the event names",
    },
  }),
  policy({
    name: "notice",
    label: "Notice",
    kind: "duration",
    hint: "Minimum for every event, such as 1h.",
  }),
  policy({
    name: "terminate_notice",
    label: "Notice before termination",
    kind: "duration",
    hint: "From 5m to 15m.",
  }),
  policy({ name: "degrade_notice", label: "Notice of a degraded host", kind: "duration" }),
  policy({
    name: "defer",
    label: "Deferral",
    kind: "duration",
    hint: "How long a guest can defer an event, once.",
  }),
  policy({
    name: "budget",
    label: "Minimum healthy machines",
    kind: "number",
    hint: "Machines that stay healthy during maintenance.",
  }),
  policy({
    name: "freezes_at_once",
    label: "Machines frozen at once",
    kind: "number",
    hint: "The limit, across update domains. 0: the machines of one update domain.",
  }),
  policy({
    name: "auto_approve",
    label: "Approve automatically",
    kind: "flag",
    hint: "Restarts, redeploys and terminations that its own users order start at once.",
  }),
  policy({
    name: "gang",
    label: "Treat update domains together",
    kind: "flag",
    hint: "forewarn disturbs all update domains of the group together, not one after another.",
  }),
];

/** @param {Group} group */
const saved = (group) => ["Saved ", groupLink(group.name), "."];

/** @type {import("./verb.js").Verb<null>} */
export const ADD_GROUP = {
  verb: "put",
  label: "Add a group",
  right: "run",
  about: "Adds a group. Its machines see each other's events.",
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
  about: "Changes the group's declaration. Events that are already announced keep their notice.",
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
  about: "Removes an empty group from the fleet.",
  question: (group) => `Delete group ${group.name}?`,
  doing: (group) => `Delete ${group.name}`,
  whyNot: (group) =>
    machinesOf(group.name) ? "the group has machines: delete them or move them to another group first" : null,
  request: (group) => remove("/v1/groups/{name}", { path: { name: group.name } }),
  command: (group) => ["group", "delete", group.name],
  outcome: (_, group) => `${group.name} is no longer in the fleet.`,
};
