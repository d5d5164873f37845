/** The filter of the history: parsed from the URL, formatted for the API and for the command. */

import { FAMILIES } from "../../elements/record_kinds.js";

/** The filters besides text and kinds, by their API names, with their labels. */
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
 * Parse the query of a URL. `kind` lists kinds and families, separated by commas.
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
 * Return the kinds of a selection of kinds and families.
 *
 * @param {readonly string[]} chosen
 * @returns {string[]}
 */
export function kindsOf(chosen) {
  const kinds = chosen.flatMap((word) => FAMILIES.find((family) => family.name === word)?.kinds ?? [word]);
  return [...new Set(kinds)];
}

/**
 * Add kinds to a selection or remove them. A family with all kinds selected is stored by its name.
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
 * Format the filter as a query for the API.
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
 * Format the filter as options of `forewarn history`.
 *
 * @param {Wanted} wanted
 * @returns {string[]}
 */
export function commandOptions(wanted) {
  const options = Object.entries(wanted.fields).flatMap(([name, value]) => [`--${name}`, value]);
  const kinds = kindsOf(wanted.kinds).flatMap((kind) => ["--kind", kind]);
  return [...(wanted.text ? ["--text", wanted.text] : []), ...kinds, ...options];
}
