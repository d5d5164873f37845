/** Add a machine, and change the declaration of an existing one. */

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
    hint: "If omitted, the machine is standalone.",
    consequence: (group, machine) => inOtherGroup(group, machine),
    suggestions: () => copy.groups.keys(),
  },
  {
    name: "host",
    mayBeNull: true,
    label: "Host",
    kind: "text",
    hint: "The host that the machine runs on now. Change it if the machine was moved outside forewarn.",
    consequence: (host) =>
      host
        ? `Records that the machine now runs on ${host}. forewarn moves nothing and gives no notice; to move it with notice, use "Move".`
        : "Records that the machine is on no host.",
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
    hint: "Source address of the machine's requests, IPv4 or IPv6.",
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
    hint: "The UUID from the hypervisor. It never changes. If omitted, the server generates one.",
    isRare: true,
  },
  {
    name: "port",
    mayBeNull: true,
    label: "Port",
    kind: "number",
    hint: "A guest listener on loopback, for this machine only.",
    isRare: true,
  },
  { name: "location", label: "Location", kind: "text", isRare: true },
  { name: "zone", label: "Zone", kind: "text", isRare: true },
  { name: "size", label: "Size", kind: "text", isRare: true },
  { name: "os", label: "Operating system", kind: "text", isRare: true },
  pairsField(
    { name: "tags", label: "Tags", kind: "lines", hint: "NAME=VALUE, one per line.", isRare: true },
    "--tag",
  ),
  {
    name: "mobility",
    label: "Mobility",
    kind: "choice",
    value: "cold",
    choices: {
      live: "live: pauses for a moment while it moves",
      "live-only": "live-only: pauses for a moment while it moves; forewarn never redeploys it instead",
      cold: "cold: is down while it moves",
      none: "none: stays on its host",
    },
    isRare: true,
  },
  pairsField(
    {
      name: "resources",
      label: "Resources",
      kind: "lines",
      hint: "Needed on the host: NAME=NUMBER, one per line.",
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
      hint: "Labels that the host must have: NAME=VALUE, one per line.",
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
  if (!group) return "The machine becomes standalone: its group no longer sees its events.";
  const project = copy.groups.get(group)?.project;
  const moves = project && project !== machine.project ? ` The machine moves to project ${project}.` : "";
  return `Group ${group} sees the machine's events from now on.${moves}`;
}

/** The fields of an existing machine: its id cannot change. */
const CHANGEABLE = DECLARED.filter(({ name }) => name !== "vm_id");

/** @type {import("./verb.js").Verb<Machine>} */
export const CHANGE_MACHINE = {
  verb: "put",
  label: "Change",
  right: "run",
  about: "Changes the machine's declaration. While it has an open event, its host and group cannot change.",
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

/** The project in which the server looks for a new machine. @param {import("./verb.js").Values} values */
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
  about: "Adds one machine to the fleet. To declare a whole fleet, run `forewarn fleet apply FILE`.",
  question: () => "Add a machine?",
  doing: () => "Add",
  fields: () => [
    { ...NAME, hint: "Unique in its project, ignoring case." },
    ...(copy.projects.size > 1
      ? [
          /** @type {Field} */ ({
            name: "project",
            label: "Project",
            kind: "text",
            hint: "If omitted, the group's project, or default.",
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
