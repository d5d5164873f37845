/** The hits of a search: first from the live copy, then from the server. */

import { orderWords } from "../elements/order_facts.js";
import { listed, shortId } from "../page/formatting.js";
import { address } from "../page/router.js";
import { api, copy } from "../service/connected.js";
import { hasText, LEAST_OF_ID } from "../service/machine_shelf.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("../types").ListedEvent} ListedEvent */
/** @typedef {import("../types").Order} Order */
/** @typedef {"machine" | "host" | "group" | "event" | "order"} HitKind */
/** @typedef {{ kind: HitKind, name: string, about: string, href: string }} Hit */

// More hits of a kind would hide the other kinds. A longer text narrows the search.
export const MOST_OF_A_KIND = 8;
const NAMES_SHOWN = 3;
const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}$/;
const PART_OF_ID = /^[0-9a-f-]{4,36}$/i;
const WHOLE_ID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const IN_ORDER = new Intl.Collator("en", { numeric: true });

/**
 * Search the live copy.
 *
 * @param {string} text
 * @returns {Hit[]}
 */
export function knownHits(text) {
  if (!text) return [];
  const part = text.toLowerCase();
  /** @param {...(string | null)} words */
  const has = (...words) => words.some((word) => word?.toLowerCase().includes(part));
  /** @param {string} id */
  const hasId = (id) => part.length >= LEAST_OF_ID && has(id);
  /** @type {Hit[][]} */
  const hits = [
    [...copy.machines.values()]
      .filter((machine) => hasText(machine, text))
      .map((machine) => machineHit(machine, text)),
    [...(copy.hosts?.values() ?? [])].filter((host) => has(host.name)).map(hostHit),
    [...copy.groups.values()].filter((group) => has(group.name)).map(groupHit),
    [...copy.events.values()].filter((event) => hasId(event.id) || has(...event.resources)).map(eventHit),
    [...copy.orders.values()]
      .filter((order) => hasId(order.id) || has(order.machine, order.host))
      .map(orderHit),
  ];
  return hits.flatMap((each) => best(each, part));
}

/**
 * Whether the server may have more hits than the live copy.
 *
 * @param {string} text
 */
export const asksServer = (text) => Boolean(text) && (!copy.machines.isWhole || PART_OF_ID.test(text));

/**
 * Search the server: for machines of a large fleet, and for ended events and orders.
 *
 * @param {string} text
 * @returns {Promise<Hit[]>}
 */
export async function foundHits(text) {
  const [machines, events, order] = await Promise.all([
    copy.machines.isWhole ? [] : foundMachines(text),
    PART_OF_ID.test(text) ? pastEvents(text) : [],
    WHOLE_ID.test(text) ? pastOrder(text.toUpperCase()) : [],
  ]);
  return [...machines, ...events, ...order];
}

/**
 * Merge hits without duplicates.
 *
 * @param {readonly Hit[]} known
 * @param {readonly Hit[]} found
 * @param {string} text
 * @returns {Hit[]}
 */
export function joined(known, found, text) {
  const all = [...new Map([...found, ...known].map((hit) => [hit.href, hit])).values()];
  const kinds = /** @type {const} */ (["machine", "host", "group", "event", "order"]);
  return kinds.flatMap((kind) =>
    best(
      all.filter((hit) => hit.kind === kind),
      text.toLowerCase(),
    ),
  );
}

/** @param {string} text */
async function foundMachines(text) {
  const queries = [{ contains: text }, ...(NAME.test(text) ? [{ name: [text] }] : [])];
  const answers = await Promise.all(
    queries.map((query) => api.get("/v1/machines", { query: { ...query, limit: MOST_OF_A_KIND } })),
  );
  return answers.flatMap(({ machines }) => machines.map((machine) => machineHit(machine, text)));
}

/** @param {string} text */
async function pastEvents(text) {
  const query = { all: true, begins: text, limit: MOST_OF_A_KIND };
  return (await api.get("/v1/events", { query })).events.map(eventHit);
}

/**
 * Find an ended order by its records.
 *
 * @param {string} id
 * @returns {Promise<Hit[]>}
 */
async function pastOrder(id) {
  const { records } = await api.get("/v1/history", { query: { order: id, limit: 1 } });
  return records.map((record) => ({
    kind: "order",
    name: `Order ${shortId(id)}`,
    about: record.machine ?? record.host ?? "",
    href: address("/orders/{id}", { id }),
  }));
}

/**
 * List the best hits of a kind: exact names, then prefixes, then the rest, in natural order.
 *
 * @param {readonly Hit[]} hits
 * @param {string} part  in lower case
 */
function best(hits, part) {
  /** @param {Hit} hit */
  const rank = ({ name }) => {
    const lower = name.toLowerCase();
    return lower === part ? 0 : lower.startsWith(part) ? 1 : 2;
  };
  return [...hits]
    .sort((one, other) => rank(one) - rank(other) || IN_ORDER.compare(one.name, other.name))
    .slice(0, MOST_OF_A_KIND);
}

/**
 * @param {Machine} machine
 * @param {string} text  the searched text; the vm-id is shown if it matches
 * @returns {Hit}
 */
function machineHit({ name, project, group, host, address: at, vm_id: id }, text) {
  const query = copy.projects.size > 1 ? { project } : {};
  const isById = text.length >= LEAST_OF_ID && id.toLowerCase().includes(text.toLowerCase());
  const about = [group && `group ${group}`, host && `on ${host}`, at, isById && id];
  return {
    kind: "machine",
    name,
    about: about.filter(Boolean).join(" · "),
    href: address("/machines/{name}", { name }, query),
  };
}

/** @param {import("../types").Host} host @returns {Hit} */
const hostHit = ({ name, state, carried }) => ({
  kind: "host",
  name,
  about: `${state}, ${carried} machines`,
  href: address("/hosts/{name}", { name }),
});

/** @param {import("../types").Group} group @returns {Hit} */
const groupHit = ({ name, kind, project }) => ({
  kind: "group",
  name,
  about: `${kind} of project ${project}`,
  href: address("/fleet", {}, { group: name }),
});

/** @param {ListedEvent} event @returns {Hit} */
const eventHit = ({ id, type, status, resources, ended_at: endedAt }) => ({
  kind: "event",
  name: `${type} of ${listed(resources, NAMES_SHOWN)}`,
  about: `${endedAt ? "over" : status} · ${id}`,
  href: address("/events/{id}", { id }),
});

/** @param {Order} order @returns {Hit} */
const orderHit = (order) => ({
  kind: "order",
  name: `${orderWords(order)} of ${order.machine ?? order.host ?? ""}`,
  about: `${order.state} · ${order.id}`,
  href: address("/orders/{id}", { id: order.id }),
});
