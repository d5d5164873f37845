/** How far an order is: its stages, and in them each machine's step. */

import { badge, workAppearance } from "./appearance.js";
import { hostLink, machineLink } from "./links.js";
import { time } from "./times.js";
import { count, span } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";

/** @typedef {import("../types").Order} Order */
/** @typedef {import("../types").Stage} Stage */
/** @typedef {import("../types").Step} Step */

const OVER = ["done", "moot", "failed"];
// More steps than that are shown only on demand: the rest of the page should be seen too.
const STEPS_SHOWN = 50;
/** How a step looks whose driver cannot tell how it is doing. @type {import("./appearance.js").Appearance} */
const UNKNOWN = { tone: "warn", glyph: "?", label: "running, unknown how far" };

/** @param {Order} order */
export function workProgress(order) {
  if (!order.stages.length) {
    return h(
      "p",
      { class: "muted" },
      order.steps.length ? "Not divided into stages yet." : "It concerns no machine.",
    );
  }
  return h(
    "ol",
    { class: "stages" },
    order.stages.map((stage, place) => stageOf(stage, place, order)),
  );
}

/**
 * @param {Stage} stage
 * @param {number} place
 * @param {Order} order
 */
function stageOf(stage, place, order) {
  const over = stage.steps.filter((step) => OVER.includes(step.state)).length;
  const title = order.stages.length > 1 ? `Stage ${place + 1} of ${order.stages.length}` : "One stage";
  const hasFailed = stage.steps.some((step) => step.state === "failed");
  return h(
    "li",
    { key: place, class: "stage", "data-tone": hasFailed ? "danger" : workAppearance(stage.state).tone },
    h(
      "div",
      { class: "row" },
      h("h3", null, title),
      badge(workAppearance(stage.state)),
      h("span", { class: "small muted number" }, `${over} of ${count(stage.steps.length, "machine")}`),
      stage.started_at && h("span", { class: "small muted" }, "started ", time(stage.started_at)),
    ),
    h("progress", {
      max: Math.max(1, stage.steps.length),
      value: over,
      "aria-label": `${title}: ${over} of ${count(stage.steps.length, "machine")} done`,
    }),
    steps(stage.steps, order),
  );
}

/**
 * @param {readonly Step[]} all
 * @param {Order} order
 */
function steps(all, order) {
  if (all.length <= STEPS_SHOWN) return stepTable(all, order);
  return h("details", null, h("summary", null, count(all.length, "step")), stepTable(all, order));
}

/**
 * @param {readonly Step[]} all
 * @param {Order} order
 */
function stepTable(all, order) {
  return h(
    "div",
    { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "Steps" },
    h(
      "table",
      { class: "stacking" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Machine", "Step", "Begun", "Ended", "Took", "What"].map((name) =>
            h("th", { scope: "col", key: name }, name),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        all.map((step) => stepRow(step, order)),
      ),
    ),
  );
}

/**
 * @param {Step} step
 * @param {Order} order
 */
function stepRow(step, order) {
  const took =
    step.begun_at && step.ended_at ? (Date.parse(step.ended_at) - Date.parse(step.begun_at)) / 1000 : null;
  const isUnknown = step.state === "running" && step.why !== null;
  const words = [
    step.attempt > 1 && `attempt ${step.attempt}`,
    step.progress !== null && `${Math.round(step.progress * 100)} % done`,
    step.impact_seconds !== null && `away for ${span(step.impact_seconds)}`,
    isUnknown ? `its state is unknown: ${step.why}` : step.why,
  ].filter((each) => each);
  return h(
    "tr",
    { key: step.machine },
    cell("Machine", machineLink(step.machine, order.project)),
    cell("Step", badge(isUnknown ? UNKNOWN : workAppearance(step.state))),
    cell("Begun", time(step.begun_at)),
    cell("Ended", time(step.ended_at)),
    cell("Took", took === null ? null : span(took)),
    cell("What", step.target || words.length ? stepWords(step.target, words.join("; ")) : null),
  );
}

/**
 * @param {string | null} target
 * @param {string} words
 */
function stepWords(target, words) {
  return [
    target && ["to ", copy.may("survey") ? hostLink(target) : target, words && "; "],
    h("span", { class: "name" }, words),
  ];
}

/**
 * A cell that says its column's name where the table is stacked; one without content is left out there.
 *
 * @param {string} name
 * @param {import("../types").Child} content
 */
export const cell = (name, content) =>
  content === null || content === ""
    ? h("td", { class: "none" }, "–")
    : h("td", { "data-label": name }, h("div", null, content));
