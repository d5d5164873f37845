/** The result of a dry run: duration, waves, reasons for waiting and warnings. */

import { groupedReasons, warningList } from "../../elements/grouped_reasons.js";
import { hostLine } from "../../elements/host_list.js";
import { simulatedPart } from "../../elements/rollout_words.js";
import { time } from "../../elements/times.js";
import { waveAxis } from "../../elements/wave_parts.js";
import { waveLegend, waveTable } from "../../elements/wave_table.js";
import { count, span } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { clock } from "../../service/connected.js";

/** @typedef {import("../../types").Rollout} Rollout */

/** @param {Rollout} plan */
export function dryRunResult(plan) {
  const begins = plan.waves[0]?.announce_at ?? null;
  const now = clock.now();
  const axis = waveAxis(plan.waves, now);
  return [
    h("p", { class: "plan-sum", key: "sum" }, summary(plan, begins)),
    h(
      "div",
      { class: "table-scroll", key: "waves" },
      waveTable({
        waves: plan.waves,
        axis,
        now,
        isPlan: true,
        hosts: (wave) => hostLine(wave.hosts),
        caption: "Waves of the plan, with their times if no guest approves early",
      }),
    ),
    axis && h("div", { key: "legend" }, waveLegend(true)),
    plan.emptying.length > 0 && h("div", { key: "emptying" }, emptying(plan)),
    plan.warnings.length > 0 && h("div", { key: "warnings" }, warningList(plan.warnings)),
    plan.waiting.length > 0 &&
      h(
        "section",
        { key: "waiting", class: "stack-tight", "aria-label": "Waiting for" },
        h("h3", null, "Waiting for"),
        groupedReasons(plan.waiting),
      ),
  ];
}

/**
 * Show how many hosts can be emptied, and the obstacles of the others.
 *
 * @param {Rollout} plan
 */
function emptying(plan) {
  const able = plan.emptying.filter((host) => host.possible).length;
  const obstacles = plan.emptying.flatMap(({ host, obstacles }) =>
    obstacles.map(({ machine, reason }) => ({ what: `${machine} on ${host}`, reason })),
  );
  return h(
    "section",
    { class: "stack-tight", "aria-label": "Hosts that can be emptied" },
    h("h3", null, `${able} of ${count(plan.emptying.length, "host")} can be emptied`),
    obstacles.length > 0 && groupedReasons(obstacles),
  );
}

/**
 * @param {Rollout} plan
 * @param {string | null} begins
 */
function summary(plan, begins) {
  const waves = count(plan.waves.length, "wave");
  if (!plan.waves.some((wave) => wave.stages.length)) return `${waves}: no machine is affected.`;
  if (!plan.ends_at || !begins) return `${waves}. The end is unknown: see “Waiting for”.`;
  const length = (Date.parse(plan.ends_at) - Date.parse(begins)) / 1000;
  return [
    h("strong", null, `${waves}, ${span(length)}`),
    " if no guest approves early. Ends about ",
    h("strong", null, time(plan.ends_at)),
    ". ",
    simulatedPart(plan) && h("span", { class: "badge wraps", "data-tone": "info" }, simulatedPart(plan)),
  ];
}
