/** Plan a rollout: a form, the maintenance windows and a dry run. Start the rollout from here. */

import { ask } from "../../actions/action_dialog.js";
import { START_ROLLOUT } from "../../actions/rollout_verbs.js";
import { asCommand } from "../../elements/as_command.js";
import { define } from "../../page/live_element.js";
import { preferences } from "../../page/preferences.js";
import { address, router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { Refusal } from "../../service/operator_api.js";
import { clock, copy } from "../../service/connected.js";
import { bindingWindows } from "../../elements/binding_windows.js";
import { DryRun } from "../../service/dry_run.js";
import "./host_choice.js";
import { dryRunResult } from "./dry_run_result.js";
import { applicableFields, FIELDS } from "./plan_fields.js";
import { planField } from "./plan_form.js";
import { commandOf, hostsOf, refusedField, requestOf, hostsText } from "./plan_request.js";
import { scopeOf, loadScope } from "./rollout_scope.js";

class PlanView extends View {
  /** @type {DryRun | null} */
  #dryRun = null;
  #isMoreOpen = false;

  opened() {
    super.opened();
    const dryRun = new DryRun(this.ended);
    this.#dryRun = dryRun;
    this.watch(copy, "machines", "projects", "hosts");
    this.watch(preferences, "changed");
    this.watch(clock, "tick");
    router.addEventListener("query", () => this.#want(), { signal: this.ended });
    this.watch(dryRun, "changed");
    this.#isMoreOpen = FIELDS.some((field) => field.isAdvanced && this.query.has(field.name));
    this.#want();
  }

  drawn() {
    if (!copy.may("run")) return notAllowed();
    const { problems } = requestOf(this.query);
    const refused = this.#refusedField();
    if (refused) problems.set(refused, this.#dryRun?.trouble?.message ?? "");
    return [
      h("h1", { key: "head" }, "Plan a rollout"),
      h(
        "div",
        { class: "plan", key: "plan" },
        h(
          "form",
          {
            class: "plan-form stack",
            "aria-label": "Plan",
            onsubmit: (/** @type {Event} */ e) => this.#submit(e),
          },
          this.#form(problems),
        ),
        h("div", { class: "stack", key: "answer" }, this.#answer(problems)),
      ),
    ];
  }

  /** @param {Map<string, string>} problems */
  #form(problems) {
    const hosts = hostsOf(this.query);
    const fields = applicableFields(this.query);
    const more = fields.filter((field) => field.isAdvanced);
    return [
      h(
        "div",
        { class: "card", key: "first" },
        h("fw-host-choice", {
          ".chosen": hosts,
          ".problem": problems.get("hosts") ?? "",
          onchoose: (/** @type {CustomEvent} */ choose) =>
            router.setQuery({ hosts: hostsText(choose.detail) }),
        }),
        fields.filter((field) => !field.isAdvanced).map((field) => this.#field(field, problems)),
      ),
      h("div", { key: "windows" }, bindingWindows(scopeOf(hosts).projects)),
      h(
        "details",
        {
          class: "more card",
          key: "more",
          open: this.#isMoreOpen || more.some((field) => problems.has(field.name)),
          ontoggle: (/** @type {any} */ toggle) => (this.#isMoreOpen = toggle.target.open),
        },
        h("summary", null, "More options"),
        h(
          "div",
          { class: "stack" },
          more.map((field) => this.#field(field, problems)),
        ),
      ),
    ];
  }

  /**
   * @param {import("./plan_fields.js").PlanField} field
   * @param {Map<string, string>} problems
   */
  #field(field, problems) {
    return planField(field, {
      text: this.query.get(field.name) ?? "",
      problem: problems.get(field.name) ?? "",
      set: (text) => router.setQuery({ [field.name]: text }),
    });
  }

  /** @param {Map<string, string>} problems */
  #answer(problems) {
    const dryRun = this.#dryRun;
    if (!dryRun) return null;
    const { plan, trouble } = dryRun;
    return h(
      "section",
      { class: "card", "aria-labelledby": "dry-run-head", "aria-busy": dryRun.isAsking ? "true" : null },
      h(
        "div",
        { class: "row spread" },
        h("h2", { id: "dry-run-head" }, "Dry run"),
        h(
          "div",
          { class: "row" },
          h("span", { class: "small muted", role: "status" }, this.#progress(dryRun, problems)),
          plan && this.#start(),
        ),
      ),
      trouble && this.#trouble(trouble),
      problems.size > 0 && !trouble && h("p", { class: "muted" }, "No plan yet: correct the form."),
      plan && dryRunResult(plan),
      asCommand(commandOf("plan", this.query)),
    );
  }

  /**
   * @param {DryRun} dryRun
   * @param {Map<string, string>} problems
   */
  #progress(dryRun, problems) {
    if (dryRun.isOld) return "The fleet has changed. Planning again …";
    if (dryRun.isAsking) return "Planning …";
    return dryRun.plan && !problems.size ? "Nothing is changed yet" : "";
  }

  /** @param {Error} trouble */
  #trouble(trouble) {
    return h(
      "div",
      { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" },
      h("strong", null, trouble instanceof Refusal ? "The server refuses this plan" : "No plan"),
      h("span", { class: "name" }, trouble.message),
    );
  }

  #start() {
    return h(
      "button",
      {
        type: "button",
        class: "primary",
        key: "start",
        onclick: () => this.#ask(),
        disabled: this.#dryRun?.isAsking,
      },
      "Start this rollout …",
    );
  }

  #want() {
    if (!copy.may("run")) return;
    const { body, problems } = requestOf(this.query);
    loadScope(hostsOf(this.query));
    this.#dryRun?.want(problems.size ? null : body);
  }

  #refusedField() {
    const trouble = this.#dryRun?.trouble;
    return trouble instanceof Refusal && !this.#dryRun?.isAsking ? refusedField(trouble.message) : null;
  }

  /** @param {Event} submit */
  #submit(submit) {
    submit.preventDefault();
    if (this.#dryRun?.plan && !this.#dryRun.isAsking) this.#ask();
  }

  /** Ask for confirmation of the shown plan. If the plan changes meanwhile, nothing is started. */
  #ask() {
    const dryRun = this.#dryRun;
    const plan = dryRun?.plan;
    if (!plan) return;
    ask(START_ROLLOUT, {
      plan,
      body: requestOf(this.query).body,
      command: commandOf("start", this.query),
      reach: scopeOf(plan.hosts),
      isCurrent: () => dryRun.plan !== null && sameWork(plan, dryRun.plan),
    });
  }
}

function notAllowed() {
  return h(
    "div",
    { class: "empty" },
    h("h1", null, "Plan a rollout"),
    h("p", null, `Only operators plan and start rollouts. Your role is ${copy.caller?.role}.`),
    h("a", { href: address("/rollouts") }, "Show all rollouts"),
  );
}

/**
 * Compare two plans without their times, which differ in each dry run.
 *
 * @param {import("../../types").Rollout} one
 * @param {import("../../types").Rollout} other
 */
function sameWork(one, other) {
  const work = (/** @type {typeof one} */ plan) =>
    JSON.stringify([plan.waves.map((wave) => wave.hosts), plan.warnings, plan.simulated_hosts]);
  return work(one) === work(other);
}

define("fw-plan-view", PlanView);
