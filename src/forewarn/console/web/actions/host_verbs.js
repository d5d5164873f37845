/** The actions on a host. */

import { driverChoices } from "../elements/driver_choices.js";
import { hostLink } from "../elements/links.js";
import { listed } from "../page/formatting.js";
import { copy } from "../service/connected.js";
import {
  EMERGENCY,
  emergencyOptions,
  emergencyTerms,
  EXCEPTIONS,
  options,
  TERMS,
  terms,
} from "./host_terms.js";
import { machinesOn } from "./touched.js";
import { flag, option, post, REASON } from "./verb.js";

/** @typedef {import("../types").Host} Host */
/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Verb<Host>} HostVerb */

/** The open order on a host, if there is one. @param {Host} host */
const orderOn = (host) => [...copy.orders.values()].find((order) => order.host === host.name);

/** @param {Host} host */
const isUnsound = (host) => host.state === "failed" || host.state === "lost";

/** @param {Host} host */
function whyNotWork(host) {
  if (host.state === "lost") return "the host is lost: wait for it to come back, or report it as failed";
  if (isUnsound(host)) return `the host is ${host.state}: restore it first`;
  const order = orderOn(host);
  return order ? `the host already has an order (${order.action}) that is ${order.state}` : null;
}

/** @type {Field[]} */
const MAINTENANCE_FIELDS = [
  {
    name: "action",
    label: "Action",
    kind: "choice",
    value: "freeze",
    choices: {
      freeze: "Freeze: machines pause for seconds",
      reboot: "Reboot: machines restart",
      redeploy: "Redeploy: machines move to other hosts",
    },
  },
  REASON,
  ...TERMS,
  {
    name: "whole",
    label: "Whole host at once",
    kind: "flag",
    hint: "The server refuses this if the host carries two update domains of a group.",
    isRare: true,
  },
  ...EXCEPTIONS,
];

/** @type {Field[]} */
const SERVICE_FIELDS = [
  {
    name: "mode",
    label: "Mode",
    kind: "choice",
    value: "evacuate",
    choices: {
      evacuate: "Evacuate: movable machines leave first, a few at a time",
      "in-place": "In place: all machines restart with the host",
    },
  },
  REASON,
  {
    name: "returning",
    label: "Move machines back afterwards",
    kind: "flag",
    hint: "The second move has its own notice.",
    when: (values) => values.mode !== "in-place",
  },
  {
    name: "host_work",
    label: "Driver for the host itself",
    kind: "choice",
    get choices() {
      return driverChoices("Default: the configured hook, or the driver of its machines");
    },
    isRare: true,
  },
  ...TERMS,
  ...EXCEPTIONS,
];

/** @type {Field} */
const FENCED = {
  name: "fenced",
  label: "Already fenced because",
  kind: "text",
  hint: "You confirm that the host is powered off or isolated. If omitted, forewarn fences it first.",
  isRare: true,
};

/** @type {HostVerb} */
const MAINTENANCE = {
  verb: "maintenance",
  label: "Maintenance",
  right: "run",
  about: "Works on the machines, one update domain of a group at a time. Guests get notice and can approve.",
  isFrequent: true,
  hurts: true,
  question: (host) => `Start maintenance on ${host.name}?`,
  doing: (host) => `Start maintenance on ${host.name}`,
  whyNot: whyNotWork,
  touches: (host) => machinesOn(host.name),
  fields: () => MAINTENANCE_FIELDS,
  typed: (host, values) => (values.emergency || values.together ? host.name : null),
  request: (host, values) =>
    post("/v1/hosts/{name}/maintenance", {
      path: { name: host.name },
      body: {
        action: /** @type {any} */ (values.action),
        whole: Boolean(values.whole),
        ...terms(values),
      },
    }),
  command: (host, values) => [
    "host",
    "maintenance",
    host.name,
    "--action",
    values.action ?? "freeze",
    ...flag("--whole", values.whole),
    ...options(values),
  ],
};

/** @type {HostVerb} */
const SERVICE = {
  verb: "service",
  label: "Service",
  right: "run",
  about:
    "Works on the host itself. Machines leave it first or restart with it. The host stays cordoned meanwhile.",
  hurts: true,
  question: (host) => `Start service work on ${host.name}?`,
  doing: (host) => `Start service on ${host.name}`,
  whyNot: whyNotWork,
  touches: (host) => machinesOn(host.name),
  fields: () => SERVICE_FIELDS,
  typed: (host, values) => (values.emergency || values.together ? host.name : null),
  request: (host, values) =>
    post("/v1/hosts/{name}/service", {
      path: { name: host.name },
      body: {
        // A bare-metal host cannot be evacuated.
        mode: host.bare_metal ? null : /** @type {any} */ (values.mode),
        returning: values.mode !== "in-place" && Boolean(values.returning),
        host_work: values.host_work || null,
        ...terms(values),
      },
    }),
  command: (host, values) => [
    "host",
    "service",
    host.name,
    values.mode === "in-place" ? "--in-place" : "--evacuate",
    ...flag("--return", values.mode === "in-place" ? "" : values.returning),
    ...option("--host-work", values.host_work),
    ...options(values),
  ],
};

/**
 * @param {"degrade" | "fail" | "wait" | "restore" | "cordon" | "uncordon"} verb
 * @param {string} label
 * @param {Partial<HostVerb> & { about: string }} more
 * @returns {HostVerb}
 */
function report(verb, label, more) {
  return {
    verb,
    label,
    right: "run",
    question: (host) => `${label} ${host.name}?`,
    doing: (host) => `${label} ${host.name}`,
    touches: (host) => machinesOn(host.name),
    fields: () => [REASON],
    request: (host, values) =>
      post(`/v1/hosts/{name}/${verb}`, {
        path: { name: host.name },
        body: /** @type {any} */ ({ reason: values.reason ?? "" }),
      }),
    command: (host, values) => ["host", verb, host.name, ...option("--reason", values.reason)],
    outcome: () => null,
    ...more,
  };
}

/** @type {HostVerb[]} */
export const HOST_VERBS = [
  MAINTENANCE,
  SERVICE,
  report("cordon", "Cordon", {
    about: "Keeps new machines off the host. Machines on it stay.",
    isFrequent: true,
    concerns: (host) => host.state !== "cordoned",
    whyNot: (host) => (host.state === "ok" ? null : `the host is ${host.state}: restore it first`),
    outcome: (_, host) => [hostLink(host.name), " accepts no new machines."],
  }),
  report("uncordon", "Uncordon", {
    about: "Lets the host accept machines again.",
    isFrequent: true,
    concerns: (host) => host.state === "cordoned",
    outcome: (_, host) => [hostLink(host.name), " accepts machines again."],
  }),
  report("degrade", "Degrade", {
    about: "Reports that the host is about to fail. Its machines move to other hosts within days.",
    hurts: true,
    question: (host) => `Report that ${host.name} is about to fail?`,
    whyNot: whyNotWork,
    fields: () => [REASON, ...EMERGENCY],
    typed: (host, values) => (values.emergency ? host.name : null),
    request: (host, values) =>
      post("/v1/hosts/{name}/degrade", {
        path: { name: host.name },
        body: { reason: values.reason ?? "", ...emergencyTerms(values) },
      }),
    command: (host, values) => [
      "host",
      "degrade",
      host.name,
      ...option("--reason", values.reason),
      ...emergencyOptions(values),
    ],
  }),
  report("fail", "Fail", {
    about:
      "Reports that the host has failed. After it is fenced, its machines restart on other hosts without notice.",
    hurts: true,
    question: (host) => `Report that ${host.name} has failed?`,
    // The operator may also confirm the fencing of a host that is already reported as failed.
    fields: () => [REASON, FENCED],
    request: (host, values) =>
      post("/v1/hosts/{name}/fail", {
        path: { name: host.name },
        body: { reason: values.reason ?? "", fenced: values.fenced || null, despite_hold: false },
      }),
    command: (host, values) => [
      "host",
      "fail",
      host.name,
      ...option("--reason", values.reason),
      ...option("--fenced", values.fenced),
    ],
    touches: async (host) => {
      const carried = await machinesOn(host.name);
      const groups = new Set(carried.machines.flatMap((machine) => machine.group ?? []));
      const of = groups.size ? ` Groups: ${listed([...groups], 12)}.` : "";
      return {
        ...carried,
        summary: `All its machines restart on other hosts, without notice.${of} ${carried.summary}`,
      };
    },
    typed: (host) => host.name,
  }),
  report("wait", "Wait longer", {
    about: "Gives the host more time to come back after the work on it.",
    concerns: (host) => host.state === "lost",
    isFrequent: true,
    question: (host) => `Give ${host.name} more time to come back?`,
    doing: (host) => `Give ${host.name} more time`,
    outcome: (_, host) => [hostLink(host.name), " has more time to come back."],
  }),
  report("restore", "Restore", {
    about: "Reports that the host works again. It accepts machines.",
    concerns: (host) => host.state !== "ok",
    isFrequent: true,
    question: (host) => `Report that ${host.name} works again?`,
    outcome: (_, host) => [hostLink(host.name), " is ok again."],
  }),
];
