/** How far an order is: its stages by kind, in them each machine's step, and what is done to the host itself. */

import { badge, workAppearance } from "./appearance.js";
import { hostSteps } from "./host_steps.js";
import { eventLink, hostLink, machineLink } from "./links.js";
import { isUnknown } from "./order_facts.js";
import { cell, stackingTable } from "./stacking_table.js";
import { stepAppearance, took } from "./step_looks.js";
import { startCountdown, time } from "./times.js";
import { count, measured, span } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";

/** @typedef {import("../types").Order} Order */
/** @typedef {import("../types").Stage} Stage */
/** @typedef {import("../types").Step} Step */
/** @typedef {import("../types").Event} Event */

const OVER = ["done", "moot", "failed"];
// More steps than that are shown only on demand: the rest of the page should be seen too.
const STEPS_SHOWN = 50;

/** What happens in a stage of each kind; of one with machines the order says it. @type {{ [kind in Stage["kind"]]: string }} */
const KINDS = {
  machines: "",
  evacuate: "machines leave",
  host: "work on the host",
  return: "machines come back",
};

/**
 * @param {Order} order
 * @param {readonly Event[]} [events]  of the order; left out: those that are listed
 */
export function workProgress(order, events = listedOf(order)) {
  const hasHostStage = order.stages.some((stage) => stage.kind === "host");
  return [
    // A failed host is fenced before its machines come back.
    !hasHostStage && hostSteps(order.host_steps),
    order.stages.length
      ? h(
          "ol",
          { class: "stages" },
          order.stages.map((stage, place) => stageOf(stage, place, order, events)),
        )
      : h(
          "p",
          { class: "muted" },
          order.steps.length ? "Not divided into stages yet." : "It concerns no machine.",
        ),
  ];
}

/** @param {Order} order */
const listedOf = (order) => [...copy.events.values()].filter((event) => event.order === order.id);

/**
 * @param {Stage} stage
 * @param {number} place
 * @param {Order} order
 * @param {readonly Event[]} events
 */
function stageOf(stage, place, order, events) {
  const title = titleOf(stage, place, order);
  const isWithHost = stage.kind === "host";
  const all = isWithHost ? [...stage.steps, ...order.host_steps] : stage.steps;
  const over = all.filter((step) => OVER.includes(step.state)).length;
  const hasFailed = all.some((step) => step.state === "failed");
  return h(
    "li",
    { key: place, class: "stage", "data-tone": hasFailed ? "danger" : workAppearance(stage.state).tone },
    h(
      "div",
      { class: "row" },
      h("h3", null, title),
      badge(workAppearance(stage.state)),
      h("span", { class: "small muted number" }, progressWords(stage)),
      stage.started_at && h("span", { class: "small muted" }, "started ", time(stage.started_at)),
    ),
    h("progress", {
      max: Math.max(1, all.length),
      value: over,
      "aria-label": `${title}: ${over} of ${count(all.length, "step")} over`,
    }),
    isWithHost && hostSteps(order.host_steps),
    stage.steps.length > 0 &&
      steps(
        stage,
        order,
        events.filter((event) => event.stage === place),
      ),
    isWithHost && !stage.steps.length && h("p", { class: "small muted" }, "No machine is on it meanwhile."),
  );
}

/**
 * @param {Stage} stage
 * @param {number} place
 * @param {Order} order
 */
function titleOf(stage, place, order) {
  const number = order.stages.length > 1 ? `Stage ${place + 1} of ${order.stages.length}` : "One stage";
  return stageWords(stage) ? `${number}: ${stageWords(stage)}` : number;
}

/** Say what happens in a stage, where its kind tells. @param {Stage} stage */
export const stageWords = (stage) => KINDS[stage.kind];

/** @param {Stage} stage */
function progressWords(stage) {
  const over = stage.steps.filter((step) => OVER.includes(step.state)).length;
  const moving = stage.steps.filter((step) => step.state === "running").length;
  const words = stage.steps.length ? `${over} of ${count(stage.steps.length, "machine")}` : "";
  return moving && isInTurns(stage) ? `${words}, ${moving} on the way` : words;
}

/** Whether its machines go a few at a time, each event by itself. @param {Stage} stage */
const isInTurns = (stage) => stage.kind === "evacuate" || stage.kind === "return";

/**
 * @param {Stage} stage
 * @param {Order} order
 * @param {readonly Event[]} events
 */
function steps(stage, order, events) {
  /** The event of each machine: the last one, where it was announced anew. @type {Map<string, Event>} */
  const told = new Map();
  for (const event of [...events].sort((one, other) => one.announced_at.localeCompare(other.announced_at)))
    for (const name of event.resources) told.set(name, event);
  const table = stackingTable(
    "Steps",
    ["Machine", "Step", "Way", "Event", "Begun", "Ended", "Took", "What"],
    stage.steps.map((step) => stepRow(step, stage, order, told.get(step.machine))),
  );
  if (stage.steps.length <= STEPS_SHOWN) return table;
  return h("details", null, h("summary", null, count(stage.steps.length, "step")), table);
}

/**
 * @param {Step} step
 * @param {Stage} stage
 * @param {Order} order
 * @param {Event | undefined} event
 */
function stepRow(step, stage, order, event) {
  const seconds = took(step);
  return h(
    "tr",
    { key: step.machine },
    cell("Machine", machineLink(step.machine, order.project)),
    cell("Step", badge(stepAppearance(step))),
    cell("Way", way(step, stage)),
    cell("Event", event ? eventOf(event, step, stage) : null),
    cell("Begun", time(step.begun_at)),
    cell("Ended", time(step.ended_at)),
    cell("Took", seconds === null ? null : span(seconds)),
    cell("What", stepWords(step)),
  );
}

/**
 * Say what becomes of a machine: where it goes and how, or that it restarts with its host.
 *
 * @param {Step} step
 * @param {Stage} stage
 */
function way(step, stage) {
  if (stage.kind === "host") return "restarts with the host";
  const to = step.target && [" to ", copy.may("survey") ? hostLink(step.target) : step.target];
  if (!step.moves && !to) return stage.kind === "machines" ? step.work : "stays";
  if (step.work === "recover") return ["comes back", to];
  if (step.work === "freeze") return ["moves live", to];
  return ["moves", to, " and restarts", step.lowered_from === "freeze" && ": it could not be moved live"];
}

/**
 * Name the event that a machine goes by, and while it waits for its turn when that is.
 *
 * @param {Event} event
 * @param {Step} step
 * @param {Stage} stage
 */
function eventOf(event, step, stage) {
  const isAhead = step.state === "waiting" && !event.ended_at && (!event.started_at || isInTurns(stage));
  return [
    eventLink(event.id),
    isAhead &&
      h(
        "div",
        { class: "small muted" },
        event.started_at ? "waits for its turn" : ["not before ", startCountdown(event.not_before)],
      ),
  ];
}

/** @param {Step} step */
function stepWords(step) {
  const words = [
    step.attempt > 1 && `attempt ${step.attempt}`,
    step.progress !== null && `${Math.round(step.progress * 100)} % done`,
    step.impact_seconds !== null && `away for ${measured(step.impact_seconds)}`,
    isUnknown(step) ? `its state is unknown: ${step.why}` : step.why,
  ].filter((each) => each);
  return words.length ? h("span", { class: "name" }, words.join("; ")) : null;
}
