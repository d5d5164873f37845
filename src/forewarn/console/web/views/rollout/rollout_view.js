/** One rollout, live: how far it is, wave by wave, what it waits for, what it has not done; pause, resume, abort. */

import { actionButtons } from "../../actions/action_buttons.js";
import { badge, workAppearance } from "../../elements/appearance.js";
import { commandText } from "../../elements/command_text.js";
import { groupedReasons, warningList } from "../../elements/grouped_reasons.js";
import { eventLink, hostLink, orderLink } from "../../elements/links.js";
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
import { FollowedRollout } from "./followed_rollout.js";
import { notDone, orderOf } from "./not_done.js";
import { noticeGiven, rolloutFacts } from "./rollout_facts.js";

/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {import("../../types").Wave} Wave */

// Why more orders ended as they did is on their own pages.
const MOST_WHYS = 20;
const MOST_UNDER_WAY = 12;

class RolloutView extends View {
  /** @type {FollowedRollout | null} */
  #followed = null;
  /** Why orders ended as they did, by their ids. @type {Map<string, string>} */
  #whys = new Map();

  opened() {
    super.opened();
    const followed = new FollowedRollout(this.names.id ?? "", this.ended);
    this.#followed = followed;
    this.watch(copy, "orders", "events");
    this.watch(clock, "tick");
    this.watch(preferences, "changed");
    followed.addEventListener("changed", () => this.#changed(followed), { signal: this.ended });
  }

  drawn() {
    const { rollout, trouble } = this.#followed ?? { rollout: null, trouble: null };
    if (!rollout)
      return trouble ? this.#missing(trouble) : h("p", { role: "status" }, "Reading the rollout …");
    return [
      this.#head(rollout),
      trouble &&
        h("p", { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" }, trouble.message),
      rollout.why && this.#why(rollout),
      this.#progress(rollout),
      this.#waves(rollout),
      !isOver(rollout) && this.#waiting(rollout),
      notDone(rollout, this.#whys),
      rollout.warnings.length > 0 && h("div", { key: "warnings" }, warningList(rollout.warnings)),
      h("div", { class: "columns", key: "facts" }, rolloutFacts(rollout), noticeGiven(rollout)),
      h(
        "details",
        { key: "command" },
        h("summary", { class: "small" }, "As a command"),
        commandText(["rollout", "show", rollout.id ?? ""]),
      ),
    ];
  }

  /** @param {Error} trouble */
  #missing(trouble) {
    const isUnknown = trouble instanceof Refusal && trouble.status === 404;
    return h(
      "div",
      { class: "empty" },
      h("h1", null, isUnknown ? "There is no such rollout" : "The rollout cannot be shown"),
      h("p", { class: "name" }, trouble.message),
      h("a", { href: address("/rollouts") }, "Show all rollouts"),
    );
  }

  /** @param {Rollout} rollout */
  #head(rollout) {
    return h(
      "div",
      { class: "row spread", key: "head" },
      h(
        "div",
        { class: "row" },
        h("h1", null, "Rollout ", h("span", { class: "mono", title: rollout.id }, shortId(rollout.id ?? ""))),
        rolloutBadge(rollout),
        h("span", { class: "muted" }, `${rollout.action} over ${count(rollout.hosts.length, "host")}`),
        simulatedPart(rollout) &&
          h("span", { class: "badge wraps", "data-tone": "info" }, simulatedPart(rollout)),
      ),
      h("div", { class: "row" }, actionButtons("rollout", rollout)),
    );
  }

  /** @param {Rollout} rollout */
  #why(rollout) {
    const tone = rollout.state === "aborted" || rollout.aborting ? "danger" : "warn";
    return h(
      "div",
      { class: "notice", "data-tone": tone, key: "why", role: "status" },
      h("strong", null, capital(rolloutState(rollout))),
      h("span", { class: "name" }, rollout.why),
    );
  }

  /** @param {Rollout} rollout */
  #progress(rollout) {
    const endsAt = this.#followed?.endsAt;
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
    );
  }

  /** @param {Rollout} rollout */
  #waves(rollout) {
    const waves = this.#followed?.waves ?? [];
    const now = clock.now();
    const axis = waveAxis(waves, now, { isWithNow: !isOver(rollout) });
    return h(
      "section",
      { class: "card", "aria-labelledby": "waves-head", key: "waves" },
      h("h2", { id: "waves-head" }, "Waves"),
      waves.length === 0 && h("p", { class: "muted" }, "None has begun."),
      waves.length > 0 &&
        h(
          "div",
          { class: "table-scroll" },
          waveTable({
            waves,
            axis,
            now,
            isPlan: false,
            hosts: (wave) => this.#hosts(wave),
            notBefore,
            caption: "Waves of the rollout, with the times that were and those that are expected",
          }),
        ),
      axis && waves.length > 0 && waveLegend(false),
    );
  }

  /** @param {Wave} wave */
  #hosts(wave) {
    return h(
      "ul",
      { class: "wave-orders" },
      wave.hosts.map((host, place) => {
        const id = wave.orders[place];
        const order = id ? copy.orders.get(id) : undefined;
        const state = order?.state ?? (this.#followed?.rollout?.hosts_done.includes(host) ? "done" : null);
        return h(
          "li",
          { key: host },
          hostLink(host),
          id && [" ", orderLink(id)],
          // What the wave says already is not said of each host again.
          id && state && state !== wave.state && [" ", badge(workAppearance(state))],
        );
      }),
    );
  }

  /** @param {Rollout} rollout */
  #waiting(rollout) {
    const until = rollout.waiting_until;
    const orders = rollout.waves.flatMap((wave) => wave.orders).flatMap((id) => copy.orders.get(id) ?? []);
    const underWay = orders.flatMap((order) =>
      order.waiting.map(({ what, reason }) => ({ order, what, reason })),
    );
    if (!underWay.length && !rollout.waiting.length) return null;
    return h(
      "section",
      { class: "card", "aria-labelledby": "waiting-head", key: "waiting" },
      h("h2", { id: "waiting-head" }, "What waits, and why"),
      underWay.length > 0 &&
        h(
          "ul",
          { class: "reasons", key: "under-way" },
          underWay
            .slice(0, MOST_UNDER_WAY)
            .map(({ order, what, reason }) =>
              h(
                "li",
                { key: `${order.id} ${what}` },
                h("strong", { class: "name" }, order.host ?? ""),
                ", ",
                copy.events.has(what) ? ["event ", eventLink(what)] : h("span", { class: "name" }, what),
                ": ",
                reason,
              ),
            ),
        ),
      underWay.length > MOST_UNDER_WAY &&
        h(
          "p",
          { class: "small muted", key: "more" },
          `and ${count(underWay.length - MOST_UNDER_WAY, "more", "more")}: see the orders.`,
        ),
      rollout.waiting.length > 0 && h("div", { key: "not-begun" }, groupedReasons(rollout.waiting)),
      until &&
        h(
          "p",
          { class: "small muted", key: "until" },
          "The first of these ends by itself ",
          time(until),
          " (",
          countdown(until),
          ").",
        ),
    );
  }

  /** @param {FollowedRollout} followed */
  #changed(followed) {
    this.redraw();
    const rollout = followed.rollout;
    if (!rollout) return;
    const stopped = isOver(rollout) || rollout.aborting ? rollout.hosts_not_done : rollout.given_up;
    for (const host of stopped.slice(0, MOST_WHYS)) {
      const order = orderOf(rollout, host);
      if (order && !this.#whys.has(order)) this.#readWhy(order);
    }
  }

  /** @param {string} id */
  async #readWhy(id) {
    this.#whys.set(id, "");
    try {
      const { order } = await api.get("/v1/orders/{id}", { path: { id } });
      // One that goes on may get its reason yet.
      if (order.ended_at || order.why) this.#whys.set(id, order.why ?? order.state);
      else this.#whys.delete(id);
    } catch {
      this.#whys.delete(id);
    }
    this.redraw();
  }
}

/**
 * Return when the guests of an announced wave expect it to start at the latest.
 *
 * @param {Wave} wave
 */
function notBefore(wave) {
  let last = null;
  if (wave.started_at) return null;
  for (const event of copy.events.values()) {
    if (wave.orders.includes(event.order) && (!last || event.not_before > last)) last = event.not_before;
  }
  return last;
}

/** @param {string} word */
const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

define("fw-rollout-view", RolloutView);
