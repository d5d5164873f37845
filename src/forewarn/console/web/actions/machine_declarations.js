/** Adding a machine, and changing what is declared of one. */

import { address } from "../page/router.js";
import { api, copy } from "../service/connected.js";
import {
  body,
  differences,
  filled,
  NAME,
  numberOr,
  options,
  pairsField,
  typedName,
} from "./declared_fields.js";
import { machineOutcome, ofProject } from "./machine_verbs.js";
import { option, put, putNew } from "./verb.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("./verb.js").Field} Field */

/** @type {import("./declared_fields.js").DeclaredField[]} */
const DECLARED = [
  {
    name: "group",
    mayBeNull: true,
    label: "Group",
    kind: "text",
    hint: "Left out: standalone.",
    consequence: (group, machine) => inOtherGroup(group, machine),
    suggestions: () => copy.groups.keys(),
  },
  {
    name: "host",
    mayBeNull: true,
    label: "Host",
    kind: "text",
    hint: "The host that carries it; another one means that it was moved there.",
    consequence: (host) =>
      host
        ? `This says that it runs on ${host} now, moved outside forewarn. Its guests get no notice; "Move" moves it with notice.`
        : "This says that no host carries it.",
    suggestions: () => copy.hosts?.keys() ?? [],
  },
  { name: "update_domain", label: "Update domain", kind: "number" },
  { name: "fault_domain", label: "Fault domain", kind: "number" },
  {
    name: "priority",
    label: "Priority",
    kind: "choice",
    value: "regular",
    choices: { regular: "regular", spot: "spot: may be evicted" },
  },
  {
    name: "address",
    mayBeNull: true,
    label: "Address",
    kind: "text",
    hint: "Where its requests come from, IPv4 or IPv6.",
  },
  {
    name: "network",
    label: "Network",
    kind: "text",
    hint: "Addresses are unique within a network.",
    isRare: true,
  },
  { name: "mac", mayBeNull: true, label: "MAC", kind: "text", isRare: true },
  {
    name: "vm_id",
    mayBeNull: true,
    label: "VM id",
    kind: "text",
    hint: "What it is known by for good: the UUID that its hypervisor gave it. Left out: one is made.",
    isRare: true,
  },
  {
    name: "port",
    mayBeNull: true,
    label: "Port",
    kind: "number",
    hint: "A guest listener of its own on loopback.",
    isRare: true,
  },
  { name: "location", label: "Location", kind: "text", isRare: true },
  { name: "zone", label: "Zone", kind: "text", isRare: true },
  { name: "size", label: "Size", kind: "text", isRare: true },
  { name: "os", label: "Operating system", kind: "text", isRare: true },
  pairsField(
    { name: "tags", label: "Tags", kind: "lines", hint: "NAME=VALUE, one on each line.", isRare: true },
    "--tag",
  ),
  {
    name: "mobility",
    label: "Mobility",
    kind: "choice",
    value: "cold",
    choices: {
      live: "live: paused for a moment while it moves",
      "live-only": "live-only: paused for a moment while it moves, and never redeployed instead",
      cold: "cold: down while it moves",
      none: "none: stays on its host",
    },
    isRare: true,
  },
  pairsField(
    {
      name: "resources",
      label: "Resources",
      kind: "lines",
      hint: "What it takes of its host: NAME=NUMBER, one on each line.",
      isRare: true,
    },
    "--resource",
    { read: numberOr },
  ),
  pairsField(
    {
      name: "labels",
      label: "Labels",
      kind: "lines",
      hint: "What it asks of its host: NAME=VALUE, one on each line.",
      isRare: true,
    },
    "--label",
  ),
];

/**
 * @param {string} group
 * @param {Machine} machine
 */
function inOtherGroup(group, machine) {
  if (!group) return "It becomes standalone: its group no longer sees its events.";
  const project = copy.groups.get(group)?.project;
  const moves = project && project !== machine.project ? ` It moves to project ${project} with it.` : "";
  return `Group ${group} sees its events from now on.${moves}`;
}

/** What can be declared of a machine that is there: its id stays. */
const CHANGEABLE = DECLARED.filter(({ name }) => name !== "vm_id");

/** @type {import("./verb.js").Verb<Machine>} */
export const CHANGE_MACHINE = {
  verb: "put",
  label: "Change",
  right: "run",
  about: "Changes what is declared of it. Another host or group is refused while an event of it is open.",
  question: (machine) => `Change ${machine.name}?`,
  doing: () => "Save",
  load: async (machine) => {
    const { answer, tag } = await api.getTagged("/v1/machines/{name}", {
      path: { name: machine.name },
      query: { project: machine.project },
    });
    return { subject: answer.machine, tag };
  },
  differences: (machine, values) => differences(CHANGEABLE, machine, values),
  fields: (machine) => filled(CHANGEABLE, machine),
  request: (machine, values) =>
    put("/v1/machines/{name}", {
      path: { name: machine.name },
      query: { project: machine.project },
      body: body(CHANGEABLE, machine, values),
    }),
  command: (machine, values) => [
    "machine",
    "put",
    machine.name,
    ...ofProject(machine.project),
    ...options(CHANGEABLE, machine, values),
  ],
  outcome: (answer) => machineOutcome(answer.machine ?? answer),
};

/** Where the server looks for a new machine's name. @param {import("./verb.js").Values} values */
const projectOf = (values) =>
  values.project || copy.groups.get((values.group ?? "").trim())?.project || "default";

/** @type {import("./verb.js").Verb<any>} */
export const ADD_MACHINE = {
  verb: "put",
  label: "Add a machine",
  right: "run",
  isFrequent: true,
  // A machine needs a host.
  concerns: () => copy.hosts?.size !== 0,
  about:
    "Declares a machine that is not in the fleet yet. A whole fleet is declared by `forewarn fleet apply FILE`.",
  question: () => "Add a machine?",
  doing: () => "Add",
  fields: () => [
    { ...NAME, hint: "Unique in its project, whatever the case." },
    ...(copy.projects.size > 1
      ? [
          /** @type {Field} */ ({
            name: "project",
            label: "Project",
            kind: "text",
            hint: "Left out: its group's, or default.",
            suggestions: () => copy.projects.keys(),
          }),
        ]
      : []),
    ...filled(DECLARED, null),
  ],
  request: (_, values) =>
    putNew("/v1/machines/{name}", {
      path: { name: typedName(values) },
      query: values.project ? { project: values.project } : {},
      body: body(DECLARED, null, values),
    }),
  command: (_, values) => [
    "machine",
    "put",
    typedName(values) || "NAME",
    "--new",
    ...option("--project", values.project),
    ...options(DECLARED, null, values),
  ],
  existing: (values) =>
    address("/machines/{name}", { name: typedName(values) }, { project: projectOf(values) }),
  outcome: (answer) => machineOutcome(answer.machine ?? answer),
};
