/** The steps on a host itself: cordon, work, uncordon; or fence, for a failed host. */

import { badge, workAppearance } from "./appearance.js";
import { cell, stackingTable } from "./stacking_table.js";
import { stepAppearance, took } from "./step_looks.js";
import { countdown, time } from "./times.js";
import { span } from "../page/formatting.js";
import { h } from "../page/tree.js";

/** @typedef {import("../types").HostStep} HostStep */

/** @type {{ [task in HostStep["task"]]: string }} */
const TASKS = {
  cordon: "accept no new machines",
  before: "prepare the host",
  work: "work on the host",
  after: "put the host back into service",
  health: "check the health of the host",
  uncordon: "accept machines again",
  fence: "isolate the failed host",
};

/** @param {readonly HostStep[]} steps */
export function hostSteps(steps) {
  if (!steps.length) return null;
  return stackingTable(
    "Steps on the host",
    ["Task", "Step", "Driver", "Begun", "Ended", "Took", "Details"],
    steps.map(row),
  );
}

/** @param {HostStep} step */
function row(step) {
  const seconds = took(step);
  return h(
    "tr",
    { key: step.task },
    cell("Task", [h("strong", null, step.task), h("div", { class: "small muted" }, TASKS[step.task])]),
    cell("Step", badge(stepAppearance(step))),
    cell("Driver", step.driver),
    cell("Begun", time(step.begun_at)),
    cell("Ended", time(step.ended_at)),
    cell("Took", seconds === null ? null : span(seconds)),
    cell("Details", details(step)),
  );
}

/** @param {HostStep} step */
function details(step) {
  const texts = [
    step.attempt > 1 && `attempt ${step.attempt}`,
    step.progress !== null && step.state === "running" && `${Math.round(step.progress * 100)} % done`,
    step.why,
  ].filter((each) => each);
  const backBy = step.state === "running" ? step.back_by : null;
  if (!texts.length && !backBy) return null;
  return [
    h("span", { class: "name" }, texts.join("; ")),
    backBy && [
      texts.length > 0 && "; ",
      "the host counts as lost if not back by ",
      time(backBy),
      " (",
      countdown(backBy),
      ")",
    ],
  ];
}

/** Name the current step on a host and its state. @param {readonly HostStep[]} steps */
export function hostStepNow(steps) {
  const step = steps.find((each) => each.state === "running" || each.state === "failed");
  return step ? `${step.task} ${workAppearance(step.state).label}` : "";
}
