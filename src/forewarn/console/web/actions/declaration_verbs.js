/** Adding a machine, and changing what is declared of one. */

import { copy } from "../service/connected.js";
import { machineOutcome, ofProject } from "./machine_verbs.js";
import { option, put } from "./verb.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Values} Values */

/** @type {Field[]} */
const DECLARED = [
  {
    name: "group",
    label: "Group",
    kind: "text",
    hint: "Left out: standalone.",
    suggestions: () => copy.groups.keys(),
  },
  {
    name: "host",
    label: "Host",
    kind: "text",
    hint: "The host that carries it; another one means that it was moved there.",
    suggestions: () => copy.hosts?.keys() ?? [],
  },
  { name: "update_domain", label: "Update domain", kind: "number" },
  { name: "fault_domain", label: "Fault domain", kind: "number" },
  {
    name: "priority",
    label: "Priority",
    kind: "choice",
    choices: { regular: "regular", spot: "spot: may be evicted" },
  },
  { name: "address", label: "Address", kind: "text", hint: "Where its requests come from, IPv4 or IPv6." },
  {
    name: "network",
    label: "Network",
    kind: "text",
    hint: "Addresses are unique within a network.",
    isRare: true,
  },
  { name: "mac", label: "MAC", kind: "text", isRare: true },
  {
    name: "vm_id",
    label: "VM id",
    kind: "text",
    hint: "What it is known by for good: the UUID that its hypervisor gave it. Left out: one is made.",
    isRare: true,
  },
  {
    name: "port",
    label: "Port",
    kind: "number",
    hint: "A guest listener of its own on loopback.",
    isRare: true,
  },
  { name: "location", label: "Location", kind: "text", isRare: true },
  { name: "zone", label: "Zone", kind: "text", isRare: true },
  { name: "size", label: "Size", kind: "text", isRare: true },
  { name: "os", label: "Operating system", kind: "text", isRare: true },
  { name: "tags", label: "Tags", kind: "lines", hint: "NAME=VALUE, one on each line.", isRare: true },
  {
    name: "mobility",
    label: "Mobility",
    kind: "choice",
    choices: {
      live: "live: paused for a moment while it moves",
      cold: "cold: down while it moves",
      none: "none: stays on its host",
    },
    isRare: true,
  },
  {
    name: "resources",
    label: "Resources",
    kind: "lines",
    hint: "What it takes of its host: NAME=NUMBER, one on each line.",
    isRare: true,
  },
  {
    name: "labels",
    label: "Labels",
    kind: "lines",
    hint: "What it asks of its host: NAME=VALUE, one on each line.",
    isRare: true,
  },
];

/** Fields that are typed pair by pair, with the option that takes one. @type {{ [name: string]: string }} */
const PAIRS = { tags: "--tag", resources: "--resource", labels: "--label" };

/** What a choice is where nothing is said. @type {{ [name: string]: string }} */
const UNSAID = { priority: "regular", mobility: "cold" };

/** Fields whose emptiness is a value: there is no such thing then. */
const MAY_BE_NULL = ["group", "host", "address", "mac", "vm_id", "port"];

/** What can be declared of a machine that is there: its id stays. */
const CHANGEABLE = DECLARED.filter(({ name }) => name !== "vm_id");

/**
 * Write what is declared of a machine as the form has it.
 *
 * @param {Machine | null} machine
 * @param {string} name
 */
function present(machine, name) {
  if (!machine) return UNSAID[name] ?? "";
  const value = /** @type {any} */ (machine)[name];
  if (PAIRS[name]) return lines(value);
  return value === null || value === undefined ? "" : String(value);
}

/** @param {{ [name: string]: string | number }} pairs */
const lines = (pairs) =>
  Object.entries(pairs)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");

/** @param {string} text */
const pairLines = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line);

/**
 * Name what differs from what is declared.
 *
 * @param {Machine | null} machine
 * @param {Values} values
 */
const changes = (machine, values) =>
  DECLARED.filter(
    ({ name }) => (values[name] ?? "").trim() !== present(machine, name) && values[name] !== undefined,
  );

/**
 * @param {Field} field
 * @param {string} text
 */
function declared({ name, kind }, text) {
  const value = text.trim();
  if (PAIRS[name]) return Object.fromEntries(pairLines(text).map((line) => pair(name, line)));
  if (!value && MAY_BE_NULL.includes(name)) return null;
  return kind === "number" ? Number(value) : value;
}

/**
 * @param {string} name
 * @param {string} line
 */
function pair(name, line) {
  const at = line.indexOf("=");
  const [key, value] = at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
  return [key, name === "resources" && value && !isNaN(Number(value)) ? Number(value) : value];
}

/**
 * @param {Machine | null} machine
 * @param {Values} values
 */
const body = (machine, values) =>
  Object.fromEntries(
    changes(machine, values).map((field) => [field.name, declared(field, values[field.name] ?? "")]),
  );

/**
 * @param {Machine | null} machine
 * @param {Values} values
 */
const options = (machine, values) =>
  changes(machine, values).flatMap(({ name }) => {
    const text = values[name] ?? "";
    const flag = PAIRS[name];
    if (flag) return pairLines(text).flatMap((line) => [flag, line]);
    return [`--${name.replace("_", "-")}`, text.trim()];
  });

/** @type {import("./verb.js").Verb<Machine>} */
export const CHANGE_MACHINE = {
  verb: "put",
  label: "Change",
  right: "run",
  about: "Changes what is declared of it. Another host or group is refused while an event of it is open.",
  question: (machine) => `Change ${machine.name}?`,
  doing: () => "Save",
  fields: (machine) => CHANGEABLE.map((field) => ({ ...field, value: present(machine, field.name) })),
  request: (machine, values) =>
    put("/v1/machines/{name}", {
      path: { name: machine.name },
      query: { project: machine.project },
      body: body(machine, values),
    }),
  command: (machine, values) => [
    "machine",
    "put",
    machine.name,
    ...ofProject(machine.project),
    ...options(machine, values),
  ],
  outcome: (answer) => machineOutcome(answer.machine ?? answer),
};

/** @type {import("./verb.js").Verb<any>} */
export const ADD_MACHINE = {
  verb: "put",
  label: "Add a machine",
  right: "run",
  isFrequent: true,
  // A machine needs a host, and hosts are declared by a fleet file alone.
  concerns: () => copy.hosts?.size !== 0,
  about: "Declares a machine. A whole fleet is declared by `forewarn fleet apply FILE`.",
  question: () => "Add a machine?",
  doing: () => "Add",
  fields: () => [
    {
      name: "name",
      label: "Name",
      kind: "text",
      isNeeded: true,
      hint: "Unique in its project, whatever the case.",
    },
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
    ...DECLARED.map((field) => ({ ...field, value: present(null, field.name) })),
  ],
  request: (_, values) =>
    put("/v1/machines/{name}", {
      path: { name: (values.name ?? "").trim() },
      query: values.project ? { project: values.project } : {},
      body: body(null, values),
    }),
  command: (_, values) => [
    "machine",
    "put",
    (values.name ?? "").trim() || "NAME",
    ...option("--project", values.project),
    ...options(null, values),
  ],
  outcome: (answer) => machineOutcome(answer.machine ?? answer),
};
