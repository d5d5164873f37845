import { bindingWindows } from "../../elements/binding_windows.js";
import { groupedReasons, warningList } from "../../elements/grouped_reasons.js";
import { groupLink } from "../../elements/links.js";
import { waveAxis } from "../../elements/wave_parts.js";
import { time } from "../../elements/times.js";
import { waveLegend, waveTable } from "../../elements/wave_table.js";
import { count, listed, span } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { clock, copy } from "../../service/connected.js";
import { DryRun } from "../../service/dry_run.js";
import { carried, stagesOf } from "../hosts/host_load.js";

/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {import("../../types").Wave} Wave */
/** @typedef {import("../../types").Machine} Machine */
/** @typedef {import("../hosts/host_load.js").Carried} Carried */
/** @typedef {"freeze" | "reboot" | "redeploy"} Maintenance */

const ACTIONS = /** @type {const} */ (["freeze", "reboot", "redeploy"]);
const MOST_NAMES = 8;

/** The effect of maintenance on a host, stage by stage: a dry run if the caller may request one. */
class HostPlan extends LiveElement {
  /** @type {string} */
  host = "";
  /** @type {Maintenance} */
  #action = "freeze";
  /** @type {DryRun | null} */
  #run = null;

  opened() {
    this.watch(copy, "machines", "projects");
    if (!copy.may("run")) return;
    this.#run = new DryRun(this.ended);
    this.watch(this.#run, "changed");
    this.#ask();
  }

  #ask() {
    const body = /** @type {any} */ ({ hosts: [this.host], action: this.#action });
    this.#run?.want(body);
  }

  drawn() {
    const groups = carried(copy.machines.onHost(this.host));
    const machines = groups.flatMap((each) => each.machines);
    return h(
      "section",
      { class: "card", "aria-labelledby": "host-plan-head" },
      h("h2", { id: "host-plan-head" }, "Effect of maintenance"),
      machines.length
        ? h("p", null, effectSummary(groups, machines))
        : h("p", { class: "muted" }, "None: the host has no machines."),
      machines.length > 0 && (this.#run ? this.#withDryRun(groups) : withoutDryRun(groups)),
    );
  }

  /** @param {Carried[]} groups */
  #withDryRun(groups) {
    const { plan = null, trouble = null, isAsking = false } = this.#run ?? {};
    return [
      h(
        "fieldset",
        { class: "plan-choice" },
        h("legend", null, "If placed now"),
        ACTIONS.map((action) =>
          h(
            "label",
            { key: action },
            h("input", {
              type: "radio",
              name: "host-plan-action",
              value: action,
              ".checked": action === this.#action,
              onchange: () => this.#choose(action),
            }),
            action,
          ),
        ),
        isAsking && h("span", { class: "muted small", role: "status" }, "planning …"),
      ),
      trouble && h("p", { class: "notice", "data-tone": "warn" }, trouble.message),
      plan && planTable(plan, groups),
      bindingWindows([...new Set(groups.map((each) => each.project))]),
      plan &&
        h(
          "a",
          { href: address("/rollouts/new", {}, { hosts: this.host, action: this.#action }) },
          "Plan a rollout",
        ),
    ];
  }

  /** @param {Maintenance} action */
  #choose(action) {
    this.#action = action;
    this.#ask();
    this.redraw();
  }
}

/**
 * @param {Carried[]} groups
 * @param {Machine[]} machines
 */
function effectSummary(groups, machines) {
  const named = groups.filter((each) => each.group !== null);
  const domains = named.reduce((sum, each) => sum + each.domains.size, 0);
  const alone = machines.filter((machine) => machine.group === null).length;
  const parts = [
    named.length && `${count(domains, "update domain")} of ${count(named.length, "group")}`,
    alone && count(alone, "standalone machine"),
  ].filter(Boolean);
  const stages = stagesOf(groups);
  const why = stages > 1 ? ", because no two update domains of a group are disturbed together" : "";
  return `${count(machines.length, "machine")}: ${parts.join(" and ")}, in ${count(stages, "stage")}${why}.`;
}

/**
 * Draw each stage as a row.
 *
 * @param {Rollout} plan
 * @param {Carried[]} groups
 */
function planTable(plan, groups) {
  const wave = plan.waves[0];
  const stages = (wave?.stages ?? []).map(
    (stage) => /** @type {Wave} */ ({ ...wave, ...stage, stages: [stage] }),
  );
  const axis = waveAxis(stages, clock.now());
  const [first] = stages;
  return [
    plan.ends_at &&
      first?.announce_at &&
      h(
        "p",
        null,
        h("strong", null, span((Date.parse(plan.ends_at) - Date.parse(first.announce_at)) / 1000)),
        " if no guest approves early. Ends about ",
        time(plan.ends_at),
        ".",
        plan.simulated_hosts.length > 0 && " Simulated: no real machine would be touched.",
      ),
    h(
      "div",
      { class: "table-scroll" },
      waveTable({
        waves: stages,
        axis,
        now: clock.now(),
        isPlan: true,
        noun: "Stage",
        subject: "Machines",
        hosts: (stage) => inStage(groups, stages.indexOf(stage)),
        caption: "Stages of the maintenance, with their times if no guest approves early",
      }),
    ),
    axis && waveLegend(true),
    warningList(plan.warnings),
    plan.waiting.length > 0 &&
      h("div", { class: "stack-tight" }, h("h3", null, "Waiting for"), groupedReasons(plan.waiting)),
  ];
}

/** @param {Carried[]} groups */
function withoutDryRun(groups) {
  return h(
    "ol",
    { class: "stage-list" },
    Array.from({ length: stagesOf(groups) }, (_, stage) => h("li", { key: stage }, inStage(groups, stage))),
  );
}

/**
 * List the machines of a stage: one update domain of each group, in order. Standalone machines are in the first stage.
 *
 * @param {Carried[]} groups
 * @param {number} stage
 */
function inStage(groups, stage) {
  return h(
    "ul",
    { class: "plain small" },
    groups.map((each) => {
      const [domain, members] = [...each.domains][stage] ?? [];
      if (each.group === null) return stage === 0 && h("li", { key: each.key }, names(each.machines));
      return members && h("li", { key: each.key }, groupLink(each.group), ` UD ${domain}: `, names(members));
    }),
  );
}

/** @param {readonly Machine[]} machines */
const names = (machines) =>
  h(
    "span",
    { class: "name" },
    listed(
      machines.map((machine) => machine.name),
      MOST_NAMES,
    ),
  );

define("fw-host-plan", HostPlan);
