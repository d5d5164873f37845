/** The maintenance windows that apply to a rollout: those of the projects with machines on its hosts. */

import { dayRangesInWords } from "../page/day_ranges.js";
import { span } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { clock, copy } from "../service/connected.js";

/** @typedef {import("../types").Project} Project */

/** @param {readonly string[]} names  of projects */
export function bindingWindows(names) {
  const projects = names.map((name) => copy.projects.get(name)).filter((project) => project !== undefined);
  const binding = projects.filter((project) => project.windows.length || coming(project).length);
  const free = projects.filter((project) => !binding.includes(project));
  return h(
    "section",
    { class: "card", "aria-labelledby": "windows-head" },
    h("h2", { id: "windows-head" }, "Maintenance windows"),
    binding.length > 0 &&
      h(
        "dl",
        { class: "windows" },
        binding.map((project) => [
          h("dt", { key: `${project.name} name`, class: "name" }, project.name),
          h("dd", { key: `${project.name} windows` }, written(project)),
        ]),
      ),
    free.length > 0 &&
      h(
        "p",
        { class: "small muted" },
        h("span", { class: "name" }, free.map((project) => project.name).join(", ")),
        binding.length ? ": at any time." : ": no windows. Maintenance may start at any time.",
      ),
    !projects.length &&
      h("p", { class: "small muted" }, "The chosen hosts carry no machines, so no window applies."),
  );
}

/** @param {Project} project */
function written(project) {
  const blackout = coming(project);
  return [
    project.windows.map((window, index) =>
      h("div", { key: index }, `${weekdayRanges(window.days)} ${window.start} for ${span(window.length)}`),
    ),
    !project.windows.length && h("div", { key: "any" }, "at any time"),
    blackout.length > 0 && h("div", { key: "blackout" }, `never on ${dayRangesInWords(blackout)}`),
    h("div", { key: "zone", class: "small muted" }, project.time_zone),
  ];
}

const DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/**
 * Write days of the week with ranges: `mon–thu, sat`.
 *
 * @param {readonly string[]} days
 */
function weekdayRanges(days) {
  const places = DAYS.map((_, place) => place).filter((place) => days.includes(DAYS[place] ?? ""));
  if (!places.length || places.length === DAYS.length) return "every day";
  /** @type {number[][]} */
  const runs = [];
  for (const place of places) {
    const last = runs.at(-1);
    if (last && last.at(-1) === place - 1) last.push(place);
    else runs.push([place]);
  }
  return runs
    .map((run) =>
      run.length > 2 ? `${DAYS[run[0] ?? 0]}–${DAYS[run.at(-1) ?? 0]}` : run.map((p) => DAYS[p]).join(", "),
    )
    .join(", ");
}

/** @param {Project} project */
function coming(project) {
  const yesterday = new Date(clock.now() - 86_400_000).toISOString().slice(0, 10);
  return project.blackout.filter((day) => day >= yesterday);
}
