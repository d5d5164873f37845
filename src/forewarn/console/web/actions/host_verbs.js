/** What can be done to a host. */

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

/** The order that a host is in the hands of, if there is one. @param {Host} host */
const orderOn = (host) => [...copy.orders.values()].find((order) => order.host === host.name);

/** @param {Host} host */
const isUnsound = (host) => host.state === "failed" || host.state === "lost";

/** @param {Host} host */
function whyNotWork(host) {
  if (host.state === "lost") return "it is lost: fail it, or wait for it, first";
  if (isUnsound(host)) return `it is ${host.state}: restore it first`;
  const order = orderOn(host);
  return order ? `it has an order already (${order.action}), which is ${order.state}` : null;
}

/** @type {Field[]} */
const MAINTENANCE_FIELDS = [
  {
    name: "action",
    label: "What is done to its machines",
    kind: "choice",
    value: "freeze",
    choices: {
      freeze: "Freeze: they are paused for seconds",
      reboot: "Reboot: they restart",
      redeploy: "Redeploy: they move to other hosts",
    },
  },
  REASON,
  ...TERMS,
  {
    name: "whole",
    label: "The whole host in one go",
    kind: "flag",
    hint: "Refused where it carries two update domains of a group.",
    isRare: true,
  },
  ...EXCEPTIONS,
];

/** @type {Field[]} */
const SERVICE_FIELDS = [
  {
    name: "mode",
    label: "What becomes of its machines",
    kind: "choice",
    value: "evacuate",
    choices: {
      evacuate: "Evacuate: those that can leave do so first, a few at a time",
      "in-place": "In place: all of them restart with the host",
    },
  },
  REASON,
  {
    name: "returning",
    label: "They come back afterwards",
    kind: "flag",
    hint: "A second move, with notice of its own.",
    when: (values) => values.mode !== "in-place",
  },
  {
    name: "host_work",
    label: "Who works on the host itself",
    kind: "choice",
    get choices() {
      return driverChoices("The hook of the settings, or who moves its machines");
    },
    isRare: true,
  },
  ...TERMS,
  ...EXCEPTIONS,
];

/** @type {Field} */
const FENCED = {
  name: "fenced",
  label: "It is fenced, because",
  kind: "text",
  hint: "You vouch that it touches its machines no more; without this, it is fenced first.",
  isRare: true,
};

/** @type {HostVerb} */
const MAINTENANCE = {
  verb: "maintenance",
  label: "Maintenance",
  right: "run",
  about: "One update domain of a group at a time; guests are told, and may get ready or approve.",
  isFrequent: true,
  hurts: true,
  question: (host) => `Maintain ${host.name}?`,
  doing: (host) => `Maintain ${host.name}`,
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
    "The host itself is worked on; machines leave it first, or restart with it. It is cordoned meanwhile.",
  hurts: true,
  question: (host) => `Work on ${host.name} itself?`,
  doing: (host) => `Work on ${host.name}`,
  whyNot: whyNotWork,
  touches: (host) => machinesOn(host.name),
  fields: () => SERVICE_FIELDS,
  typed: (host, values) => (values.emergency || values.together ? host.name : null),
  request: (host, values) =>
    post("/v1/hosts/{name}/service", {
      path: { name: host.name },
      body: {
        // Bare metal cannot be emptied.
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
    about: "It takes no more machines; those that it carries stay.",
    isFrequent: true,
    concerns: (host) => host.state !== "cordoned",
    whyNot: (host) => (host.state === "ok" ? null : `it is ${host.state}: restore it first`),
    outcome: (_, host) => [hostLink(host.name), " takes no more machines."],
  }),
  report("uncordon", "Uncordon", {
    about: "It takes machines again.",
    isFrequent: true,
    concerns: (host) => host.state === "cordoned",
    outcome: (_, host) => [hostLink(host.name), " takes machines again."],
  }),
  report("degrade", "Degrade", {
    about: "It is going to fail: its machines move to other hosts within days.",
    hurts: true,
    question: (host) => `Report that ${host.name} is going to fail?`,
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
      "It has failed: its machines come back on other hosts without notice, once it is fenced or vouched for.",
    hurts: true,
    question: (host) => `Report that ${host.name} has failed?`,
    // One that has failed may still be vouched for.
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
        summary: `All of its machines restart on other hosts, without notice.${of} ${carried.summary}`,
      };
    },
    typed: (host) => host.name,
  }),
  report("wait", "Wait on", {
    about: "It is given more time to come back from the work on it.",
    concerns: (host) => host.state === "lost",
    isFrequent: true,
    question: (host) => `Wait on for ${host.name}?`,
    outcome: (_, host) => [hostLink(host.name), " is given more time."],
  }),
  report("restore", "Restore", {
    about: "It is sound again, and takes machines.",
    concerns: (host) => host.state !== "ok",
    isFrequent: true,
    question: (host) => `Report that ${host.name} is sound again?`,
    outcome: (_, host) => [hostLink(host.name), " is sound again."],
  }),
];
