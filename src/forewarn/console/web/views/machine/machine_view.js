import { actionButtons } from "../../actions/action_buttons.js";
import { badge, machineAppearance } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { eventCard } from "../../elements/event_card.js";
import { fact } from "../../elements/fact.js";
import { groupLink, hostLink } from "../../elements/links.js";
import { orderCard } from "../../elements/order_card.js";
import { pageHead } from "../../elements/page_head.js";
import { recentRecords } from "../../elements/recent_records.js";
import { sourceWords } from "../../elements/sources.js";
import { countdown, time } from "../../elements/times.js";
import { define } from "../../page/live_element.js";
import { address, router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { api, copy } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";
import { groupCard } from "./machine_group.js";

/** @typedef {import("../../types").Machine} Machine */
/** @typedef {import("../../types").Order} Order */

/** One machine: details, events, open orders and history. */
class MachineView extends View {
  /** @type {LiveAnswer<Machine> | null} */
  #machine = null;
  #project = "";
  #looking = new AbortController();

  opened() {
    super.opened();
    this.watch(copy, "events", "orders", "groups", "holds");
    // Another project may have a machine of the same name.
    router.addEventListener("query", () => this.#look(), { signal: this.ended });
    this.ended.addEventListener("abort", () => this.#looking.abort());
    this.#machine = null;
    this.#look();
  }

  #look() {
    const project = this.query.get("project") ?? "";
    if (this.#machine && project === this.#project) return;
    this.#project = project;
    this.#looking.abort();
    this.#looking = new AbortController();
    const { signal } = this.#looking;
    const name = this.names.name ?? "";
    this.#machine = new LiveAnswer(
      () =>
        api.get("/v1/machines/{name}", { path: { name }, query: this.#query }).then(({ machine }) => machine),
      (record) => this.#isAbout(record),
      signal,
    );
    this.#machine.addEventListener("changed", () => this.redraw(), { signal });
  }

  /** @param {import("../../types").Record} record */
  #isAbout(record) {
    const machine = this.#machine?.value;
    if (record.machine?.toLowerCase() === this.names.name?.toLowerCase() || record.kind === "fleet-applied")
      return true;
    // A failure or an abandoned order on a host may have no record for each machine.
    return Boolean(machine && (record.host ? record.host === machine.host : record.group === machine.group));
  }

  get #query() {
    return this.#project ? { project: this.#project } : {};
  }

  drawn() {
    const name = this.names.name ?? "";
    const answer = /** @type {LiveAnswer<Machine>} */ (this.#machine);
    const machine = answer.value;
    if (answer.isMissing || (answer.trouble && !machine)) return this.#missing(name, answer);
    if (!machine)
      return [
        h("h1", { class: "name" }, name),
        h("p", { class: "muted", role: "status", "aria-busy": "true" }, "Loading …"),
      ];
    const events = copy.eventsOf(machine);
    const orders = [...copy.orders.values()].filter((order) => concerns(order, machine));
    return [
      this.#head(machine),
      h(
        "div",
        { class: "columns" },
        h(
          "div",
          { class: "stack" },
          h(
            "section",
            { class: "card" },
            h("h2", null, "Events"),
            events.length ? events.map(eventCard) : h("p", { class: "muted" }, "No events."),
          ),
          h(
            "section",
            { class: "card" },
            h("h2", null, "Open orders"),
            orders.length ? orders.map(orderCard) : h("p", { class: "muted" }, "No open orders."),
          ),
          h(
            "section",
            { class: "card" },
            h("h2", null, "History"),
            recentRecords({ machine: machine.name, project: machine.project }),
          ),
        ),
        h("div", { class: "stack" }, this.#facts(machine), groupCard(machine)),
      ),
      asCommand(
        this.#command("machine", "show", machine.name),
        this.#command("history", "--machine", machine.name),
      ),
    ];
  }

  /** @param {Machine} machine */
  #head(machine) {
    return pageHead({
      path: [
        h("a", { href: address("/fleet") }, "Fleet"),
        machine.group && [" / ", groupLink(machine.group)],
      ],
      heading: h("h1", { class: "name" }, machine.name),
      signs: badge(machineAppearance(machine, copy.eventsOf(machine))),
      actions: actionButtons("machine", machine),
    });
  }

  /** @param {Machine} machine */
  #facts(machine) {
    const tags = Object.entries(machine.tags);
    return h(
      "section",
      { class: "card" },
      h("h2", null, "Details"),
      h(
        "dl",
        { class: "facts" },
        fact("State", machine.state),
        fact("Host", machine.host && (copy.may("survey") ? hostLink(machine.host) : machine.host)),
        fact("Group", machine.group ? groupLink(machine.group) : "standalone"),
        fact("Project", machine.project),
        machine.group && fact("Update domain", machine.update_domain),
        fact("Fault domain", machine.fault_domain),
        fact("Priority", machine.priority),
        fact(
          "Scheduled events",
          machine.enabled
            ? "enabled"
            : `not enabled: the first poll of ${machine.group ? "the group" : "the machine"} enables them`,
        ),
        fact(
          "Last poll",
          machine.last_seen ? [countdown(machine.last_seen), " (", time(machine.last_seen), ")"] : "never",
        ),
        fact("VM ID", h("span", { class: "mono" }, machine.vm_id)),
        fact("Source", sourceWords(machine.source)),
        fact("Address", [
          machine.address,
          machine.network && machine.network !== "default" && ` in ${machine.network}`,
        ]),
        fact("MAC", machine.mac),
        fact("Guest port", machine.port),
        fact("Location", machine.location),
        fact("Zone", machine.zone),
        fact("Size", machine.size),
        fact("Operating system", machine.os),
        fact(
          "Tags",
          tags.length
            ? h(
                "ul",
                { class: "plain" },
                tags.map(([key, value]) => h("li", { key, class: "name" }, `${key} = ${value}`)),
              )
            : null,
        ),
      ),
    );
  }

  /**
   * @param {string} name
   * @param {LiveAnswer<Machine>} answer
   */
  #missing(name, answer) {
    return [
      h("h1", { class: "name" }, name),
      h(
        "div",
        { class: "empty" },
        h("p", { class: "notice", "data-tone": "danger", role: "alert" }, answer.trouble),
        answer.isMissing && h("p", null, "The machine may have been removed or renamed."),
        this.#sameName(name),
        h("a", { href: address("/history", {}, { machine: name }) }, "Search the history"),
        h("a", { href: address("/fleet") }, "Show the fleet"),
      ),
    ];
  }

  /**
   * Link to the machines of the same name in other projects.
   *
   * @param {string} name
   */
  #sameName(name) {
    if (this.#project || copy.projects.size < 2) return null;
    const known = [...copy.projects.keys()].filter((project) => copy.machines.get(project, name));
    return known.map((project) =>
      h(
        "a",
        { key: project, class: "name", href: address("/machines/{name}", { name }, { project }) },
        `${name} of ${project}`,
      ),
    );
  }

  /** @param {...string} words */
  #command(...words) {
    return this.#project ? [...words, "--project", this.#project] : words;
  }
}

/**
 * @param {Order} order
 * @param {Machine} machine
 */
function concerns(order, machine) {
  const isSame = (/** @type {string | null} */ name) => name?.toLowerCase() === machine.name.toLowerCase();
  if (order.machine !== null)
    return isSame(order.machine) && (order.project ?? machine.project) === machine.project;
  return [...order.stages.flatMap((stage) => stage.steps), ...order.steps].some((step) =>
    isSame(step.machine),
  );
}

define("fw-machine-view", MachineView);
