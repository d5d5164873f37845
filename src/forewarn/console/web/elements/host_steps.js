/** What is done to a host itself, step by step: cordoned, worked on, let go again; a failed one is fenced. */

import { badge, workAppearance } from "./appearance.js";
import { cell, stackingTable } from "./stacking_table.js";
import { stepAppearance, took } from "./step_looks.js";
import { countdown, time } from "./times.js";
import { span } from "../page/formatting.js";
import { h } from "../page/tree.js";

/** @typedef {import("../types").HostStep} HostStep */

/** @type {{ [task in HostStep["task"]]: string }} */
const TASKS = {
  cordon: "takes no more machines",
  before: "is made ready",
  work: "is worked on",
  after: "is put back",
  health: "is asked whether it is well",
  uncordon: "takes machines again",
  fence: "is kept from its machines",
};

/** @param {readonly HostStep[]} steps */
export function hostSteps(steps) {
  if (!steps.length) return null;
  return stackingTable(
    "Steps on the host",
    ["On the host", "Step", "By", "Begun", "Ended", "Took", "What"],
    steps.map(row),
  );
}

/** @param {HostStep} step */
function row(step) {
  const seconds = took(step);
  return h(
    "tr",
    { key: step.task },
    cell("On the host", [h("strong", null, step.task), h("div", { class: "small muted" }, TASKS[step.task])]),
    cell("Step", badge(stepAppearance(step))),
    cell("By", step.driver),
    cell("Begun", time(step.begun_at)),
    cell("Ended", time(step.ended_at)),
    cell("Took", seconds === null ? null : span(seconds)),
    cell("What", words(step)),
  );
}

/** @param {HostStep} step */
function words(step) {
  const said = [
    step.attempt > 1 && `attempt ${step.attempt}`,
    step.progress !== null && step.state === "running" && `${Math.round(step.progress * 100)} % done`,
    step.why,
  ].filter((each) => each);
  const backBy = step.state === "running" ? step.back_by : null;
  if (!said.length && !backBy) return null;
  return [
    h("span", { class: "name" }, said.join("; ")),
    backBy && [said.length > 0 && "; ", "lost unless over by ", time(backBy), " (", countdown(backBy), ")"],
  ];
}

/** Say where the work on a host stands, in few words. @param {readonly HostStep[]} steps */
export function hostStepNow(steps) {
  const step = steps.find((each) => each.state === "running" || each.state === "failed");
  return step ? `${step.task} ${workAppearance(step.state).label}` : "";
}
