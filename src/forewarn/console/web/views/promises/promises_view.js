/** Kept and broken promises of notice, by project and month. */

import { asCommand } from "../../elements/as_command.js";
import { commandText } from "../../elements/command_text.js";
import { download } from "../../elements/download.js";
import { promisedSeconds } from "../../elements/event_facts.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { api, copy } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";
import { promiseChart } from "./promise_chart.js";
import { isWanted, readWanted, share, total } from "./promise_counts.js";
import { promiseTable } from "./promise_table.js";
import { promiseDefinitions } from "./promise_definitions.js";

/** @typedef {import("../../types").PromiseCount} PromiseCount */

const COLUMNS = /** @type {const} */ ([
  ...["project", "month", "simulated", "kept", "late", "never", "judged", "broken", "unannounced"],
]);
// Below this share of kept promises, the total is red.
const MOSTLY = 0.95;
const WORKS = { "": "All work", real: "Real work", simulated: "Simulated work" };

class PromisesView extends View {
  /** @type {LiveAnswer<PromiseCount[]> | null} */
  #promises = null;

  opened() {
    super.opened();
    this.watch(copy, "projects", "events");
    this.#promises = new LiveAnswer(
      () => api.all("/v1/promises", "promises"),
      ({ topics }) => topics.includes("promises"),
      this.ended,
    );
    this.watch(this.#promises, "changed");
  }

  drawn() {
    return [h("h1", null, "Promises"), this.#content()];
  }

  #content() {
    const { value: all = null, trouble = "" } = this.#promises ?? {};
    if (trouble) return h("p", { class: "notice", "data-tone": "danger", role: "alert" }, trouble);
    if (!all) return h("p", { class: "muted", role: "status" }, "Loading …");
    if (!all.length) return [nothingYet(), notJudgedYet(), promiseDefinitions(), asCommand(["promises"])];
    const wanted = readWanted(this.query);
    const rows = all.filter((row) => isWanted(row, wanted));
    return [
      this.#filters(all),
      notJudgedYet(),
      rows.length
        ? [sums(rows), simulatedNotice(rows), this.#results(rows), exportButtons(rows)]
        : h(
            "div",
            { class: "empty" },
            h("p", null, "No promises match."),
            h("button", { type: "button", onclick: clear }, "Show all"),
          ),
      asCommand(command(wanted)),
    ];
  }

  /** @param {readonly PromiseCount[]} rows */
  #results(rows) {
    return [
      h(
        "div",
        { class: "promise-columns", key: "columns" },
        h(
          "section",
          { class: "card", "aria-label": "By month" },
          h("h2", null, "Machines by month"),
          h(
            "div",
            { class: "table-scroll", tabindex: "0", role: "region", "aria-label": "Chart" },
            promiseChart(rows),
          ),
        ),
        promiseDefinitions(),
      ),
      h("section", { class: "card", key: "table", "aria-label": "Counts" }, promiseTable(rows)),
    ];
  }

  /** @param {readonly PromiseCount[]} all */
  #filters(all) {
    const projects = [...new Set(all.map((row) => row.project))].sort();
    const months = [...new Set(all.map((row) => row.month))].sort();
    const same = (/** @type {string[]} */ names) => Object.fromEntries(names.map((name) => [name, name]));
    return h(
      "div",
      { class: "row promise-filters", role: "search", "aria-label": "Promises", key: "filters" },
      this.#choice("project", "Project", { "": "All projects", ...same(projects) }),
      this.#choice("from", "From", { "": "The beginning", ...same(months) }),
      this.#choice("to", "To", { "": "Now", ...same(months) }),
      this.#choice("work", "Work", WORKS),
    );
  }

  /**
   * @param {"project" | "from" | "to" | "work"} name
   * @param {string} label
   * @param {{ [value: string]: string }} choices
   */
  #choice(name, label, choices) {
    const chosen = this.query.get(name) ?? "";
    const offered = chosen in choices ? choices : { ...choices, [chosen]: chosen };
    return h(
      "div",
      { class: "field", key: name },
      h("label", { for: `promises-${name}` }, label),
      h(
        "select",
        {
          id: `promises-${name}`,
          onchange: (/** @type {any} */ change) => router.setQuery({ [name]: change.target.value }),
        },
        Object.entries(offered).map(([value, text]) =>
          h("option", { key: value, value, ".selected": value === chosen }, text),
        ),
      ),
    );
  }
}

function clear() {
  router.setQuery({ project: null, from: null, to: null, work: null });
}

/** @param {readonly PromiseCount[]} rows */
function sums(rows) {
  const { kept, judged, late, never, broken, unannounced } = total(rows);
  return h(
    "dl",
    { class: "promise-sums", key: "sums" },
    sum(
      toneOf(kept, judged),
      "✓",
      share(total(rows)),
      `kept: ${kept.toLocaleString("en")} of ${count(judged, "machine")}`,
    ),
    sum(late ? "warn" : "idle", "◔", late.toLocaleString("en"), "notified late"),
    sum(never ? "danger" : "idle", "○", never.toLocaleString("en"), "never notified"),
    sum(broken ? "danger" : "idle", "✕", broken.toLocaleString("en"), "broken by an operator"),
    sum(unannounced ? "danger" : "idle", "!", unannounced.toLocaleString("en"), "unannounced"),
  );
}

/**
 * @param {number} kept
 * @param {number} judged
 */
function toneOf(kept, judged) {
  if (!judged) return "idle";
  if (kept === judged) return "calm";
  return kept / judged >= MOSTLY ? "warn" : "danger";
}

/** @param {readonly PromiseCount[]} rows */
function simulatedNotice(rows) {
  if (!rows.every((row) => row.simulated)) return null;
  return h(
    "p",
    { class: "notice", "data-tone": "info", key: "simulated" },
    "All work was simulated: no real machine was touched.",
  );
}

/**
 * @param {string} tone
 * @param {string} glyph
 * @param {string} number
 * @param {string} words
 */
function sum(tone, glyph, number, words) {
  return h(
    "div",
    { class: "card promise-sum", "data-tone": tone, key: words.split(":")[0] },
    h("dt", null, h("span", { "aria-hidden": "true" }, `${glyph} `), words),
    h("dd", { class: "number" }, number),
  );
}

/** Count the started events that are not judged yet. */
function notJudgedYet() {
  const open = [...copy.events.values()].filter((event) => event.started_at && promisedSeconds(event));
  if (!open.length) return null;
  return h(
    "p",
    { class: "muted", key: "open" },
    `${count(open.length, "started event is", "started events are")} not counted yet. Promises are judged when the event ends.`,
  );
}

function nothingYet() {
  return h(
    "div",
    { class: "empty", key: "empty" },
    h("p", null, "No promises yet: no announced event has ended."),
    h("p", null, "Place an order. Its promise is judged when the event ends:"),
    commandText(["machine", "restart", "web-0"]),
  );
}

/** @param {readonly PromiseCount[]} rows */
function exportButtons(rows) {
  const csv = () =>
    [COLUMNS.join(","), ...rows.map((row) => COLUMNS.map((name) => row[name]).join(","))].join("\n") + "\n";
  const json = () => `${JSON.stringify({ promises: rows }, null, 2)}\n`;
  return h(
    "div",
    { class: "row", key: "export" },
    h(
      "button",
      {
        type: "button",
        onclick: () => download(new Blob([csv()], { type: "text/csv;charset=utf-8" }), "promises.csv"),
      },
      "Export CSV",
    ),
    h(
      "button",
      {
        type: "button",
        onclick: () => download(new Blob([json()], { type: "application/json" }), "promises.json"),
      },
      "Export JSON",
    ),
  );
}

/**
 * Return the equivalent command, for one month or all months.
 *
 * @param {import("./promise_counts.js").Wanted} wanted
 */
function command({ project, from, to }) {
  const month = from && from === to ? ["--month", from] : [];
  return ["promises", ...(project ? ["--project", project] : []), ...month];
}

define("fw-promises-view", PromisesView);
