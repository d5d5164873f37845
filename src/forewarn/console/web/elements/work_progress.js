/** The progress of an order: its stages, the step of each machine, and the steps on the host itself. */

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
// A longer list is folded, so that the rest of the view stays visible.
const STEPS_SHOWN = 50;

/** The work of each kind of stage. The order itself describes a stage with machines. @type {{ [kind in Stage["kind"]]: string }} */
const KINDS = {
  machines: "",
  evacuate: "machines leave",
  host: "work on the host",
  return: "machines come back",
};

/**
 * @param {Order} order
 * @param {readonly Event[]} [events]  the order's events; if omitted, those in the live copy
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
          order.steps.length ? "The stages are not planned yet." : "This order affects no machine.",
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
    isWithHost &&
      !stage.steps.length &&
      h("p", { class: "small muted" }, "The host carries no machine during this stage."),
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

/** Describe the work of a stage, if its kind defines it. @param {Stage} stage */
export const stageWords = (stage) => KINDS[stage.kind];

/** @param {Stage} stage */
function progressWords(stage) {
  const over = stage.steps.filter((step) => OVER.includes(step.state)).length;
  const moving = stage.steps.filter((step) => step.state === "running").length;
  const words = stage.steps.length ? `${over} of ${count(stage.steps.length, "machine")}` : "";
  return moving && isInTurns(stage) ? `${words}, ${moving} moving` : words;
}

/** Whether machines move a few at a time, each with its own event. @param {Stage} stage */
const isInTurns = (stage) => stage.kind === "evacuate" || stage.kind === "return";

/**
 * @param {Stage} stage
 * @param {Order} order
 * @param {readonly Event[]} events
 */
function steps(stage, order, events) {
  /** The latest event of each machine. @type {Map<string, Event>} */
  const latest = new Map();
  for (const event of [...events].sort((one, other) => one.announced_at.localeCompare(other.announced_at)))
    for (const name of event.resources) latest.set(name, event);
  const table = stackingTable(
    "Steps",
    ["Machine", "Step", "Change", "Event", "Begun", "Ended", "Took", "Details"],
    stage.steps.map((step) => stepRow(step, stage, order, latest.get(step.machine))),
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
    cell("Change", changeOf(step, stage)),
    cell("Event", event ? eventOf(event, step, stage) : null),
    cell("Begun", time(step.begun_at)),
    cell("Ended", time(step.ended_at)),
    cell("Took", seconds === null ? null : span(seconds)),
    cell("Details", stepDetails(step)),
  );
}

/**
 * Describe what the step does to the machine: it moves, restarts or stays.
 *
 * @param {Step} step
 * @param {Stage} stage
 */
function changeOf(step, stage) {
  if (stage.kind === "host") return "restarts with the host";
  const to = step.target && [" to ", copy.may("survey") ? hostLink(step.target) : step.target];
  if (!step.moves && !to) return stage.kind === "machines" ? step.work : "stays";
  if (step.work === "recover") return ["comes back", to];
  if (step.work === "freeze") return ["moves live", to];
  return ["moves", to, " and restarts", step.lowered_from === "freeze" && ": a live move was not possible"];
}

/**
 * Link the event of a machine, with its NotBefore while the machine waits.
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
        event.started_at ? "waiting for its turn" : ["not before ", startCountdown(event.not_before)],
      ),
  ];
}

/** @param {Step} step */
function stepDetails(step) {
  const details = [
    step.attempt > 1 && `attempt ${step.attempt}`,
    step.progress !== null && `${Math.round(step.progress * 100)} % done`,
    step.impact_seconds !== null && `down for ${measured(step.impact_seconds)}`,
    isUnknown(step) ? `state unknown: ${step.why}` : step.why,
  ].filter((each) => each);
  return details.length ? h("span", { class: "name" }, details.join("; ")) : null;
}
