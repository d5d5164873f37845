/** The projects with their maintenance windows and actions. */

import { actionButtons } from "../../actions/action_buttons.js";
import { windowLine } from "../../actions/project_declarations.js";
import { sourceWords } from "../../elements/sources.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { dayRangesInWords } from "../../page/day_ranges.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Project} Project */

export function projectList() {
  const projects = [...copy.projects.values()];
  return h(
    "details",
    { class: "projects", key: "projects" },
    h("summary", null, `${count(projects.length, "project")} and maintenance windows`),
    stackingTable(
      "Projects",
      ["Project", "Maintenance windows", "Days without maintenance", "Permissions", "Source", ""],
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
        : "any time",
    ),
    cell("Days without maintenance", project.blackout.length ? dayRangesInWords(project.blackout) : null),
    cell("Permissions", may.join(", ")),
    cell("Source", sourceWords(project.source)),
    cell("", actionButtons("project", project)),
  );
}
