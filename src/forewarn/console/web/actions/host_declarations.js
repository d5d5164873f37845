/** Add, change and delete hosts. */

import { driverChoices, driversBeside } from "../elements/driver_choices.js";
import { hostLink } from "../elements/links.js";
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
import { machinesOn } from "./touched.js";
import { put, putNew, remove } from "./verb.js";

/** @typedef {import("../types").Host} Host */
/** @typedef {import("./declared_fields.js").DeclaredField} DeclaredField */

/**
 * @param {Host | null} host
 * @returns {DeclaredField[]}
 */
const declared = (host) => [
  {
    name: "driver",
    label: "Driver",
    kind: "choice",
    choices: host ? driversBeside(host.driver) : driverChoices("Default: the fleet's driver"),
  },
  {
    name: "uri",
    label: "URI",
    kind: "text",
    hint: "The address that the driver connects to, such as qemu+ssh://host-1/system. Never put a password here.",
  },
  {
    name: "at_once",
    label: "Concurrent driver calls",
    kind: "number",
    hint: "The limit for this host. If omitted, the driver's own limit.",
    isRare: true,
  },
  pairsField(
    {
      name: "resources",
      label: "Resources",
      kind: "lines",
      hint: "Capacity, one per line, such as ram-gib=256. With overcommit: vcpus=64x4.",
      isRare: true,
    },
    "--resource",
    { read: resource, written: ({ amount, ratio }) => (ratio === 1 ? `${amount}` : `${amount}x${ratio}`) },
  ),
  pairsField(
    {
      name: "labels",
      label: "Labels",
      kind: "lines",
      hint: "Labels that machines can require, one per line, such as rack=7.",
      isRare: true,
    },
    "--label",
  ),
  {
    name: "bare_metal",
    label: "Bare metal",
    kind: "flag",
    hint: "The host is also its only machine, with the same name.",
    isRare: true,
  },
];

/** @param {string} text */
function resource(text) {
  const [amount = "", ratio] = text.split("x");
  return ratio === undefined ? numberOr(amount) : { amount: numberOr(amount), ratio: numberOr(ratio) };
}

/** @param {Host} host */
const saved = (host) => ["Saved ", hostLink(host.name), "."];

/** @type {import("./verb.js").Verb<null>} */
export const ADD_HOST = {
  verb: "put",
  label: "Add a host",
  right: "run",
  isFrequent: true,
  about: "Adds a host. To import hosts from a hypervisor or a cloud, run `forewarn fleet import`.",
  question: () => "Add a host?",
  doing: () => "Add",
  fields: () => [NAME, ...filled(declared(null), null)],
  request: (_, values) =>
    putNew("/v1/hosts/{name}", {
      path: { name: typedName(values) },
      body: body(declared(null), null, values),
    }),
  command: (_, values) => [
    "host",
    "put",
    typedName(values) || "NAME",
    "--new",
    ...options(declared(null), null, values),
  ],
  existing: (values) => address("/hosts/{name}", { name: typedName(values) }),
  outcome: (answer) => saved(answer.host),
};

/** @type {import("./verb.js").Verb<Host>} */
export const CHANGE_HOST = {
  verb: "put",
  label: "Change",
  right: "run",
  about: "Changes the host's declaration. Work that has started keeps the old values.",
  question: (host) => `Change ${host.name}?`,
  doing: () => "Save",
  load: async (host) => {
    const { answer, tag } = await api.getTagged("/v1/hosts/{name}", { path: { name: host.name } });
    return { subject: { ...host, ...answer.host }, tag };
  },
  differences: (host, values) => differences(declared(host), host, values),
  fields: (host) => filled(declared(host), host),
  request: (host, values) =>
    put("/v1/hosts/{name}", { path: { name: host.name }, body: body(declared(host), host, values) }),
  command: (host, values) => ["host", "put", host.name, ...options(declared(host), host, values)],
  outcome: (answer) => saved(answer.host),
};

/** @type {import("./verb.js").Verb<Host>} */
export const DELETE_HOST = {
  verb: "delete",
  label: "Delete",
  right: "run",
  about: "Removes an empty host from the fleet.",
  question: (host) => `Delete ${host.name}?`,
  doing: (host) => `Delete ${host.name}`,
  whyNot: (host) => {
    const carried = copy.machines.onHost(host.name).length;
    return carried ? "the host carries machines: move or delete them first" : null;
  },
  touches: (host) => machinesOn(host.name),
  typed: (host) => host.name,
  request: (host) => remove("/v1/hosts/{name}", { path: { name: host.name } }),
  command: (host) => ["host", "delete", host.name],
  leadsTo: () => address("/hosts"),
  outcome: (_, host) => `${host.name} is no longer in the fleet.`,
};
