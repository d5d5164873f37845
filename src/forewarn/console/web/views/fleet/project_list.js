/** The projects, what each has declared of its maintenance, and what can be done with them. */

import { actionButtons } from "../../actions/action_buttons.js";
import { windowLine } from "../../actions/project_declarations.js";
import { sourceWords } from "../../elements/sources.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Project} Project */

export function projectList() {
  const projects = [...copy.projects.values()];
  return h(
    "details",
    { class: "projects", key: "projects" },
    h(
      "summary",
      null,
      `${count(projects.length, "project")}, and when maintenance may disturb ${projects.length === 1 ? "it" : "each"}`,
    ),
    stackingTable(
      "Projects",
      ["Project", "Maintenance windows", "Days without", "May", "Source", ""],
      projects.map(row),
    ),
  );
}

/** @param {Project} project */
function row(project) {
  const may = [project.rehearsal && "rehearse", project.sees_hosts && "see hosts"].filter(Boolean);
  return h(
    "tr",
    { key: project.name },
    cell("Project", h("span", { class: "name" }, project.name)),
    cell(
      "Maintenance windows",
      project.windows.length
        ? [
            project.windows.map((window) => h("div", { key: windowLine(window) }, windowLine(window))),
            h("div", { class: "small muted" }, project.time_zone),
          ]
        : "always",
    ),
    cell("Days without", project.blackout.length ? stretches(project.blackout).join(", ") : null),
    cell("May", may.join(", ")),
    cell("Source", sourceWords(project.source)),
    cell("", actionButtons("project", project)),
  );
}

const DAY = 86_400_000;

/**
 * Write days that follow one another as the first and the last of them.
 *
 * @param {readonly string[]} days  in their order
 */
function stretches(days) {
  /** @type {[string, string][]} */
  const found = [];
  for (const day of days) {
    const last = found.at(-1);
    if (last && Date.parse(day) - Date.parse(last[1]) === DAY) last[1] = day;
    else found.push([day, day]);
  }
  return found.map(([first, last]) => (first === last ? first : `${first} to ${last}`));
}
