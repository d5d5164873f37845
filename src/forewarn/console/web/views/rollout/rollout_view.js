/** One rollout, live: progress by host and wave, reasons for waiting, uncompleted hosts and actions. */

import { linkedIds } from "../../elements/links.js";
import { actionButtons } from "../../actions/action_buttons.js";
import { asCommand } from "../../elements/as_command.js";
import { warningList } from "../../elements/grouped_reasons.js";
import { keepOneReachable } from "../../elements/machine_tile.js";
import { pageHead } from "../../elements/page_head.js";
import { progressWords, rolloutProgress } from "../../elements/rollout_progress.js";
import {
  isOver,
  rolloutBadge,
  rolloutState,
  simulatedPart,
  wavesDone,
} from "../../elements/rollout_words.js";
import { countdown, time } from "../../elements/times.js";
import { waveAxis } from "../../elements/wave_parts.js";
import { waveLegend, waveTable } from "../../elements/wave_table.js";
import { count, shortId } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { preferences } from "../../page/preferences.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { Refusal } from "../../service/operator_api.js";
import { api, clock, copy } from "../../service/connected.js";
import { FollowedRollout } from "../../service/followed_rollout.js";
import { failuresSoFar, HostGrid, lostHosts } from "./host_grid.js";
import { notDone, orderOf } from "./not_done.js";
import { hiddenWaves, hostsOfWave, notBefore } from "./wave_details.js";
import { waitingFor } from "./waiting_reasons.js";
import { noticeGiven, rolloutFacts } from "./rollout_facts.js";

/** @typedef {import("../../types").Rollout} Rollout */

// The page loads the outcomes of at most this many orders.
const MOST_OUTCOMES = 20;

class RolloutView extends View {
  /** @type {FollowedRollout | null} */
  #followed = null;
  #showsAllWaves = false;
  #hostGrid = new HostGrid();
  /** The outcomes of orders, by id. @type {Map<string, string>} */
  #outcomes = new Map();

  opened() {
    super.opened();
    const followed = new FollowedRollout(this.names.id ?? "", this.ended);
    this.#followed = followed;
    this.watch(copy, "orders", "events", "hosts");
    this.watch(clock, "tick");
    this.watch(preferences, "changed");
    this.addEventListener("focusin", ({ target }) =>
      keepOneReachable(this, /** @type {HTMLElement} */ (target).closest(".host-grid-cell")),
    );
    followed.addEventListener("changed", () => this.#changed(followed), { signal: this.ended });
  }

  drawn() {
    const { rollout, trouble } = this.#followed ?? { rollout: null, trouble: null };
    if (!rollout)
      return trouble ? this.#missing(trouble) : h("p", { role: "status" }, "Loading the rollout …");
    queueMicrotask(() => keepOneReachable(this));
    return [
      this.#head(rollout),
      trouble &&
        h("p", { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" }, trouble.message),
      rollout.why && this.#why(rollout),
      lostHosts(rollout),
      this.#progress(rollout),
      this.#hostGrid.drawn(rollout),
      this.#waves(rollout),
      !isOver(rollout) && waitingFor(rollout),
      notDone(rollout, this.#outcomes),
      rollout.warnings.length > 0 && h("div", { key: "warnings" }, warningList(rollout.warnings)),
      h("div", { class: "columns", key: "facts" }, rolloutFacts(rollout), noticeGiven(rollout)),
      asCommand(["rollout", "show", rollout.id ?? ""]),
    ];
  }

  /** @param {Error} trouble */
  #missing(trouble) {
    const isUnknown = trouble instanceof Refusal && trouble.status === 404;
    return h(
      "div",
      { class: "empty" },
      h("h1", null, isUnknown ? "Rollout not found" : "Cannot show the rollout"),
      h("p", { class: "name" }, trouble.message),
      h("a", { href: address("/rollouts") }, "Show all rollouts"),
    );
  }

  /** @param {Rollout} rollout */
  #head(rollout) {
    return pageHead({
      path: h("a", { href: address("/rollouts") }, "Rollouts"),
      heading: h(
        "h1",
        null,
        "Rollout ",
        h("span", { class: "mono", title: rollout.id }, shortId(rollout.id ?? "")),
      ),
      signs: [
        rolloutBadge(rollout),
        h("span", { class: "muted" }, `${rollout.action} over ${count(rollout.hosts.length, "host")}`),
        simulatedPart(rollout) &&
          h("span", { class: "badge wraps", "data-tone": "info" }, simulatedPart(rollout)),
      ],
      actions: actionButtons("rollout", rollout),
    });
  }

  /** @param {Rollout} rollout */
  #why(rollout) {
    return h(
      "div",
      { class: "notice", "data-tone": "warn", key: "why", role: "status" },
      h("strong", null, capital(rolloutState(rollout))),
      h("span", { class: "name" }, linkedIds(rollout.why ?? "")),
    );
  }

  /** @param {Rollout} rollout */
  #progress(rollout) {
    // The end of a paused rollout is unknown.
    const endsAt = rollout.state === "paused" ? null : this.#followed?.endsAt;
    return h(
      "section",
      { class: "card", "aria-label": "Progress", key: "progress" },
      rolloutProgress(rollout),
      h(
        "div",
        { class: "row spread" },
        h("span", null, h("strong", null, progressWords(rollout)), ` · ${wavesDone(rollout)}`),
        rollout.ended_at
          ? h("span", { class: "muted" }, "ended ", time(rollout.ended_at))
          : endsAt &&
              h("span", { class: "muted" }, "ends about ", time(endsAt), " (", countdown(endsAt), ")"),
      ),
      failuresSoFar(rollout) && h("p", { class: "small muted name" }, failuresSoFar(rollout)),
    );
  }

  /** @param {Rollout} rollout */
  #waves(rollout) {
    const waves = this.#followed?.waves ?? [];
    const now = clock.now();
    const first = this.#showsAllWaves || isOver(rollout) ? 0 : hiddenWaves(waves);
    const axis = waveAxis(waves.slice(first), now, { isWithNow: !isOver(rollout) });
    return h(
      "section",
      { class: "card", "aria-labelledby": "waves-head", key: "waves" },
      h("h2", { id: "waves-head" }, "Waves"),
      first > 0 &&
        h(
          "div",
          { key: "earlier" },
          h(
            "button",
            { type: "button", onclick: () => this.#showAllWaves() },
            `Show ${count(first, "earlier wave")}`,
          ),
        ),
      waves.length === 0 && h("p", { class: "muted" }, "No wave has begun."),
      waves.length > 0 &&
        h(
          "div",
          { class: "table-scroll" },
          waveTable({
            waves: waves.slice(first),
            first,
            axis,
            now,
            isPlan: false,
            hosts: (wave) => hostsOfWave(rollout, wave),
            notBefore,
            caption: "Waves of the rollout, with actual and expected times",
          }),
        ),
      axis && waves.length > 0 && waveLegend(false),
    );
  }

  #showAllWaves() {
    this.#showsAllWaves = true;
    this.redraw();
  }

  /** @param {FollowedRollout} followed */
  #changed(followed) {
    this.redraw();
    const rollout = followed.rollout;
    if (!rollout) return;
    const stopped = isOver(rollout) || rollout.aborting ? rollout.hosts_not_done : rollout.given_up;
    for (const host of stopped.slice(0, MOST_OUTCOMES)) {
      const order = orderOf(rollout, host);
      if (order && !this.#outcomes.has(order)) this.#readOutcome(order);
    }
  }

  /** @param {string} id */
  async #readOutcome(id) {
    this.#outcomes.set(id, "");
    try {
      const { order } = await api.get("/v1/orders/{id}", { path: { id } });
      // An open order may still get its reason.
      if (order.ended_at || order.why) this.#outcomes.set(id, order.why ?? order.state);
      else this.#outcomes.delete(id);
    } catch {
      this.#outcomes.delete(id);
    }
    this.redraw();
  }
}

/** @param {string} word */
const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

define("fw-rollout-view", RolloutView);
