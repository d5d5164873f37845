/** What the address of the page asks for: as a body for the API, as a command, and what cannot be sent at all. */

import { EXPECTED_SPAN, parseSpan } from "../../page/typed_times.js";
import { FIELDS } from "./plan_fields.js";

/** @typedef {import("../../types").RolloutBody} RolloutBody */
/** @typedef {import("./plan_fields.js").PlanField} PlanField */

// Somebody who has chosen to choose has chosen none yet.
const NONE_YET = ",";

/**
 * Read which hosts are chosen; null: all.
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
 * Write chosen hosts as the address has them.
 *
 * @param {readonly string[] | null} hosts
 */
export const writtenHosts = (hosts) => (hosts === null ? null : hosts.join(",") || NONE_YET);

/**
 * Return what is sent to the API, and what of it cannot be sent, by the names of fields.
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
  for (const field of FIELDS) {
    const text = query.get(field.name) ?? "";
    if (!text) continue;
    const value = sent(field, text);
    if (value === null) problems.set(field.name, `${EXPECTED_SPAN}, got "${text}"`);
    else body[field.key] = value;
  }
  return { body, problems };
}

/**
 * Return what the API takes for what was typed; null if it is no span of time.
 *
 * @param {PlanField} field
 * @param {string} text
 */
function sent(field, text) {
  if (field.kind === "span") return parseSpan(text);
  if (field.kind === "flag") return field.sent ?? true;
  // What is no number is sent as it is: the API says what it expects.
  if (field.kind === "count") return Number.isFinite(Number(text)) ? Number(text) : text;
  return text;
}

/**
 * Return the words of the command that does the same.
 *
 * @param {"plan" | "start"} verb
 * @param {URLSearchParams} query
 */
export function commandOf(verb, query) {
  const words = ["rollout", verb, ...(hostsOf(query) ?? ["--all"])];
  for (const field of FIELDS) {
    const text = query.get(field.name);
    if (!text) continue;
    words.push(field.flag);
    if (field.kind !== "flag") words.push(text);
  }
  return words;
}

/**
 * Find the field that a refusal of the API names, as in `gap_seconds: expected at least 0 s`.
 *
 * @param {string} message
 */
export function refusedField(message) {
  const key = /^([a-z_]+)(\[\d+\])?: /.exec(message)?.[1];
  if (key === "hosts" || /^host "/.test(message)) return "hosts";
  return FIELDS.find((field) => field.key === key)?.name ?? null;
}
