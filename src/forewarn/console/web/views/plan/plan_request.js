/** Translate the query of the page into an API request and a command, and validate it. */

import { EXPECTED_MOMENT, EXPECTED_SPAN, isMoment, parseSpan } from "../../page/typed_times.js";
import { applicableFields, FIELDS } from "./plan_fields.js";

/** @typedef {import("../../types").RolloutBody} RolloutBody */
/** @typedef {import("./plan_fields.js").PlanField} PlanField */

// The query value of an empty selection.
const NONE_YET = ",";

/**
 * Return the selected hosts, or null for all.
 *
 * @param {URLSearchParams} query
 * @returns {string[] | null}
 */
export function hostsOf(query) {
  const text = query.get("hosts");
  if (text === null || text === "all") return null;
  return [...new Set(text.split(",").filter((name) => name))];
}

/**
 * Format the selected hosts for the query.
 *
 * @param {readonly string[] | null} hosts
 */
export const hostsText = (hosts) => (hosts === null ? null : hosts.join(",") || NONE_YET);

/**
 * Return the request body for the API, and the problems by field name.
 *
 * @param {URLSearchParams} query
 * @returns {{ body: RolloutBody, problems: Map<string, string> }}
 */
export function requestOf(query) {
  /** @type {Map<string, string>} */
  const problems = new Map();
  /** @type {any} */
  const body = { hosts: hostsOf(query) ?? "all", action: "freeze" };
  if (!body.hosts.length) problems.set("hosts", "choose at least one host");
  for (const field of applicableFields(query)) {
    const text = query.get(field.name) ?? "";
    if (!text) continue;
    const value = apiValue(field, text);
    const expected = field.kind === "moment" ? EXPECTED_MOMENT : EXPECTED_SPAN;
    if (value === null) problems.set(field.name, `${expected}, got "${text}"`);
    else body[field.key] = value;
  }
  return { body, problems };
}

/**
 * Convert the text of a field to its API value. Return null if the text is not a valid duration or time.
 *
 * @param {PlanField} field
 * @param {string} text
 */
function apiValue(field, text) {
  if (field.kind === "span") return parseSpan(text);
  if (field.kind === "moment") return isMoment(text) ? text : null;
  if (field.kind === "flag") return field.apiValue ?? true;
  // Other text is sent unchanged, and the API explains what it expects.
  if (field.kind === "count") return Number.isFinite(Number(text)) ? Number(text) : text;
  return text;
}

/**
 * Return the equivalent command as words.
 *
 * @param {"plan" | "start"} verb
 * @param {URLSearchParams} query
 */
export function commandOf(verb, query) {
  const words = ["rollout", verb, ...(hostsOf(query) ?? ["--all"])];
  for (const field of applicableFields(query)) {
    const text = query.get(field.name);
    if (!text) continue;
    words.push(field.flag);
    if (field.kind !== "flag") words.push(text);
  }
  return words;
}

/**
 * Return the field named in an API error such as `gap_seconds: expected at least 0 s`.
 *
 * @param {string} message
 */
export function refusedField(message) {
  const key = /^([a-z_]+)(\[\d+\])?: /.exec(message)?.[1];
  if (key === "hosts" || /^host "/.test(message)) return "hosts";
  return FIELDS.find((field) => field.key === key)?.name ?? null;
}
