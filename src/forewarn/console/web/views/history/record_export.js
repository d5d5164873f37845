/** Export of records, byte for byte the same as `forewarn history export`. */

import { api } from "../../service/connected.js";

/** @typedef {import("../../types").Record} Record */
/** @typedef {"csv" | "jsonl"} Form */

const COLUMNS = /** @type {const} */ ([
  ...["number", "at", "kind", "project", "group", "host"],
  ...["machine", "event", "order", "by", "reason"],
]);
const PAGE = 1000;
// The line endings of Python's `splitlines`.
// eslint-disable-next-line no-control-regex
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

/**
 * Fetch all pages, oldest first.
 *
 * @param {{ [name: string]: string | string[] }} query
 * @param {Form} form
 * @param {object} how
 * @param {AbortSignal} how.signal
 * @param {(records: number, number: number) => void} how.onPage  the number of records so far, and the newest record number
 * @returns {Promise<Blob>}
 */
export async function exported(query, form, { signal, onPage }) {
  const write = form === "csv" ? csvLine : jsonLine;
  const parts = form === "csv" ? [`${COLUMNS.join(",")}\n`] : [];
  let above = 0;
  let read = 0;
  for (;;) {
    const page = await api.get("/v1/history", {
      query: /** @type {any} */ ({ ...query, above, limit: PAGE }),
    });
    signal.throwIfAborted();
    parts.push(page.records.map(write).join(""));
    read += page.records.length;
    onPage(read, Number(page.next ?? page.records.at(-1)?.number ?? above));
    if (page.next === null) break;
    above = Number(page.next); // may be beyond the last match of a search
  }
  return new Blob(parts, { type: form === "csv" ? "text/csv;charset=utf-8" : "application/jsonl" });
}

/** @param {Record} record */
function jsonLine(record) {
  const pairs = Object.entries(record).map(([name, value]) => `${JSON.stringify(name)}: ${jsonValue(value)}`);
  return `{${pairs.join(", ")}}\n`;
}

/**
 * Format a value as the command does, with a space after each comma.
 *
 * @param {unknown} value
 */
function jsonValue(value) {
  if (!Array.isArray(value)) return JSON.stringify(value);
  return `[${value.map((each) => JSON.stringify(each)).join(", ")}]`;
}

/** @param {Record} record */
function csvLine(record) {
  const values = { ...record, reason: lines(record.reason ?? "").join(" ") };
  return `${COLUMNS.map((name) => csvField(/** @type {any} */ (values)[name])).join(",")}\n`;
}

/** @param {string} text */
function lines(text) {
  const found = text.split(LINE_END);
  if (found.at(-1) === "") found.pop();
  return found;
}

/** @param {string | number | null} value */
function csvField(value) {
  const text = String(value ?? "");
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
