/** All rollouts: open ones live, ended ones page by page. */

import { asCommand } from "../../elements/as_command.js";
import { commandText } from "../../elements/command_text.js";
import { linkedIds, rolloutLink } from "../../elements/links.js";
import { progressWords, rolloutProgress } from "../../elements/rollout_progress.js";
import { isOver, rolloutBadge, simulatedPart, wavesDone } from "../../elements/rollout_words.js";
import { countdown, time } from "../../elements/times.js";
import { define } from "../../page/live_element.js";
import { count, messageOf } from "../../page/formatting.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { api, copy } from "../../service/connected.js";

/** @typedef {import("../../types").Rollout} Rollout */

const PAGE = 50;

class RolloutsView extends View {
  /** Ended rollouts, newest first; null before the first answer. @type {Rollout[] | null} */
  #past = null;
  /** @type {string | null} */
  #next = null;
  #trouble = "";
  #openIds = "";

  opened() {
    super.opened();
    this.watch(copy, "rollouts");
    // A rollout that left the live copy has ended.
    copy.addEventListener("rollouts", () => this.#compare(), { signal: this.ended });
    copy.addEventListener("loaded", () => this.#read(null), { signal: this.ended });
    this.#openIds = openIds();
    this.#read(null);
  }

  drawn() {
    const open = [...(copy.rollouts?.values() ?? [])];
    const past = this.#past?.filter((rollout) => !copy.rollouts?.has(rollout.id ?? "")) ?? [];
    return [
      h(
        "div",
        { class: "row spread", key: "head" },
        h("h1", null, "Rollouts"),
        copy.may("run") && h("a", { class: "button", href: address("/rollouts/new") }, "Plan a rollout"),
      ),
      this.#trouble &&
        h("p", { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" }, this.#trouble),
      !open.length && this.#past && !past.length ? nothingYet() : [this.#open(open), this.#over(past)],
      asCommand(["rollout", "list"]),
    ];
  }

  /** @param {Rollout[]} open */
  #open(open) {
    return h(
      "section",
      { class: "card", "aria-labelledby": "open-head", key: "open" },
      h("h2", { id: "open-head" }, open.length ? `Open (${open.length})` : "No open rollouts"),
      open.length > 0 && table(open, "Open rollouts"),
    );
  }

  /** @param {Rollout[]} past */
  #over(past) {
    if (!past.length) return null;
    return h(
      "section",
      { class: "card", "aria-labelledby": "over-head", key: "over" },
      h("h2", { id: "over-head" }, "Ended"),
      table(past, "Ended rollouts"),
      this.#next &&
        h(
          "div",
          null,
          h("button", { type: "button", onclick: () => this.#read(this.#next) }, "Older rollouts"),
        ),
    );
  }

  #compare() {
    const ids = openIds();
    if (ids !== this.#openIds) this.#read(null);
    this.#openIds = ids;
  }

  /** @param {string | null} after */
  async #read(after) {
    try {
      const page = await api.get("/v1/rollouts", { query: { limit: PAGE, after } });
      const over = page.rollouts.filter(isOver);
      this.#past = after ? [...(this.#past ?? []), ...over] : over;
      this.#next = page.next;
      this.#trouble = "";
    } catch (error) {
      this.#trouble = messageOf(error);
    }
    this.redraw();
  }
}

const openIds = () => [...(copy.rollouts?.keys() ?? [])].join(" ");

function nothingYet() {
  return h(
    "div",
    { class: "empty", key: "empty" },
    h("h2", null, "No rollouts yet"),
    h(
      "p",
      null,
      "A rollout maintains many hosts in waves, and never disturbs two update domains of a group together.",
    ),
    copy.may("run") && h("a", { class: "button", href: address("/rollouts/new") }, "Plan a rollout"),
    commandText(["rollout", "plan", "--all", "--action", "reboot"]),
  );
}

/**
 * @param {Rollout[]} rollouts
 * @param {string} caption
 */
function table(rollouts, caption) {
  return h(
    "div",
    { class: "table-scroll" },
    h(
      "table",
      { class: "rollouts" },
      h("caption", { class: "visually-hidden" }, caption),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Rollout", "State", "Hosts", "Waves", "Begun", "Placed by", "Details"].map((head) =>
            h("th", { scope: "col", key: head }, head),
          ),
        ),
      ),
      h("tbody", null, rollouts.map(row)),
    ),
  );
}

/** @param {Rollout} rollout */
function row(rollout) {
  const ending = rollout.ended_at ? ["ended ", countdown(rollout.ended_at)] : null;
  return h(
    "tr",
    { key: rollout.id ?? "" },
    h(
      "td",
      { class: "rollout-id" },
      rolloutLink(rollout.id ?? ""),
      h("div", { class: "small" }, rollout.action),
    ),
    h(
      "td",
      null,
      rolloutBadge(rollout),
      simulatedPart(rollout) && h("div", { class: "small muted" }, "simulated"),
    ),
    h(
      "td",
      { class: "rollout-hosts" },
      rolloutProgress(rollout),
      h("div", { class: "small" }, progressWords(rollout)),
    ),
    h("td", { class: "number" }, wavesDone(rollout)),
    h(
      "td",
      { class: "number" },
      time(rollout.created_at),
      ending && h("div", { class: "small muted" }, ending),
    ),
    h("td", { class: "rollout-by name" }, rollout.by),
    h("td", { class: "rollout-why" }, linkedIds(why(rollout))),
  );
}

/** @param {Rollout} rollout */
function why(rollout) {
  if (rollout.why) return rollout.why;
  const first = rollout.waiting[0];
  if (first && !isOver(rollout)) {
    const more = rollout.waiting.length - 1;
    return `${first.what}: ${first.reason}${more ? ` (and ${count(more, "more", "more")})` : ""}`;
  }
  return rollout.reason ?? "";
}

define("fw-rollouts-view", RolloutsView);
