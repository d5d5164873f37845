/** Which records are wanted: read from the address, asked of the API, written as the command's options. */

import { FAMILIES } from "../../elements/record_kinds.js";

/** What else the address may say of records, under the names of the API, with the words of their fields. */
export const FIELDS = /** @type {const} */ ({
  machine: "Machine",
  host: "Host",
  group: "Group",
  event: "Event",
  order: "Order",
  project: "Project",
  by: "By",
  since: "Since",
  until: "Until",
});

/** @typedef {keyof typeof FIELDS} Field */
/** @typedef {{ text: string, kinds: string[], at: number | null, fields: { [F in Field]?: string } }} Wanted */

/**
 * Read what an address wants; `kind` has kinds and families of them, with commas between.
 *
 * @param {URLSearchParams} query
 * @returns {Wanted}
 */
export function readWanted(query) {
  const at = query.get("at") ?? "";
  return {
    text: query.get("text") ?? "",
    kinds: (query.get("kind") ?? "").split(",").filter(Boolean),
    at: /^\d{1,15}$/.test(at) ? Number(at) : null,
    fields: Object.fromEntries(
      fieldNames()
        .map((name) => [name, query.get(name) ?? ""])
        .filter(([, value]) => value),
    ),
  };
}

/** @returns {Field[]} */
export const fieldNames = () => /** @type {Field[]} */ (Object.keys(FIELDS));

/** @param {Wanted} wanted */
export const isFiltered = (wanted) =>
  Boolean(wanted.text || wanted.kinds.length || Object.keys(wanted.fields).length);

/**
 * List the kinds that a choice of kinds and families stands for.
 *
 * @param {readonly string[]} chosen
 * @returns {string[]}
 */
export function kindsOf(chosen) {
  const kinds = chosen.flatMap((word) => FAMILIES.find((family) => family.name === word)?.kinds ?? [word]);
  return [...new Set(kinds)];
}

/**
 * Choose a kind or a family, or choose it no longer; of a family whose kinds all are chosen, its name is kept.
 *
 * @param {readonly string[]} chosen
 * @param {readonly string[]} kinds
 * @param {boolean} isWanted
 * @returns {string[]}
 */
export function withKinds(chosen, kinds, isWanted) {
  const before = kindsOf(chosen).filter((kind) => !kinds.includes(kind));
  const after = isWanted ? [...before, ...kinds] : before;
  const whole = FAMILIES.filter((family) => family.kinds.every((kind) => after.includes(kind)));
  const covered = whole.flatMap((family) => /** @type {string[]} */ (family.kinds));
  return [...whole.map((family) => family.name), ...after.filter((kind) => !covered.includes(kind))];
}

/**
 * Write what is wanted as the API's query.
 *
 * @param {Wanted} wanted
 * @returns {{ [name: string]: string | string[] }}
 */
export function apiQuery(wanted) {
  /** @type {{ [name: string]: string | string[] }} */
  const query = { ...wanted.fields };
  if (wanted.text) query.text = wanted.text;
  if (wanted.kinds.length) query.kind = kindsOf(wanted.kinds);
  return query;
}

/**
 * Write what is wanted as options of `forewarn history`.
 *
 * @param {Wanted} wanted
 * @returns {string[]}
 */
export function commandOptions(wanted) {
  const options = Object.entries(wanted.fields).flatMap(([name, value]) => [`--${name}`, value]);
  const kinds = kindsOf(wanted.kinds).flatMap((kind) => ["--kind", kind]);
  return [...(wanted.text ? ["--text", wanted.text] : []), ...kinds, ...options];
}
