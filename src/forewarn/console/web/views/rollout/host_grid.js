/** The progress of a rollout by host: a cell per host, wave by wave, with counts by state. */

import { badge } from "../../elements/appearance.js";
import { hostLink } from "../../elements/links.js";
import { moveBetweenTiles } from "../../elements/machine_tile.js";
import { count, listed } from "../../page/formatting.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { LOOKS, progressOf } from "../../elements/host_progress.js";

/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {import("../../types").Child} Child */
/** @typedef {import("../../page/tree.js").Described} Described */
/** @typedef {import("../../elements/host_progress.js").Progress} Progress */

/** Draws the hosts of a rollout, and redraws only when a host makes progress. */
export class HostGrid {
  #seen = "";
  /** @type {Described | null} */
  #drawn = null;

  /**
   * @param {Rollout} rollout
   * @returns {Child}
   */
  drawn(rollout) {
    const progress = progressOf(rollout);
    const seen = JSON.stringify([rollout.waves.map((wave) => wave.hosts), [...progress.values()]]);
    if (seen !== this.#seen || !this.#drawn) {
      this.#seen = seen;
      this.#drawn = grid(rollout, progress);
    }
    return this.#drawn;
  }
}

/**
 * @param {Rollout} rollout
 * @param {ReadonlyMap<string, Progress>} progress
 */
function grid(rollout, progress) {
  const counts = Map.groupBy(progress.values(), (each) => each);
  const canaries = new Set(rollout.hosts.slice(0, rollout.canary));
  return h(
    "section",
    { class: "card", "aria-labelledby": "host-grid-head", key: "host-grid" },
    h("h2", { id: "host-grid-head" }, "Host progress"),
    h(
      "ul",
      { class: "host-grid-counts" },
      /** @type {Progress[]} */ (Object.keys(LOOKS))
        .filter((each) => counts.has(each))
        .map((each) =>
          h("li", { key: each }, badge(LOOKS[each], `${counts.get(each)?.length ?? 0} ${LOOKS[each].label}`)),
        ),
    ),
    h(
      "ol",
      { class: "host-grid", onkeydown: moveBetweenTiles },
      rollout.waves.map((wave, place) =>
        h(
          "li",
          { key: wave.hosts[0] ?? place, class: "host-grid-wave" },
          h(
            "span",
            { class: "small muted number host-grid-name" },
            `Wave ${place + 1}`,
            wave.hosts.every((host) => canaries.has(host)) && ", canaries",
          ),
          h(
            "span",
            { class: "host-grid-cells" },
            wave.hosts.map((host) => cell(host, progress.get(host) ?? "planned")),
          ),
        ),
      ),
    ),
  );
}

/**
 * @param {string} host
 * @param {Progress} progress
 */
function cell(host, progress) {
  const look = LOOKS[progress];
  const words = `${host}: ${look.label}`;
  return h(
    "a",
    {
      key: host,
      class: "host-grid-cell",
      href: address("/hosts/{name}", { name: host }),
      tabindex: "-1",
      title: words,
      "aria-label": words,
      "data-tone": look.tone,
      "data-progress": progress,
    },
    look.glyph,
  );
}

/** List the lost hosts, which need a decision of an operator. @param {Rollout} rollout */
export function lostHosts(rollout) {
  const lost = [...progressOf(rollout)].filter(([, progress]) => progress === "lost").map(([host]) => host);
  if (!lost.length) return null;
  return h(
    "div",
    { class: "notice", "data-tone": "danger", role: "status", key: "lost" },
    h("strong", null, `${count(lost.length, "host")} did not return: an operator must decide`),
    h(
      "p",
      null,
      "Fail the host or wait longer, on the page of ",
      lost.map((host, place) => [place > 0 && ", ", hostLink(host)]),
      ".",
    ),
  );
}

/** Return the number of failed hosts, with the allowed number. @param {Rollout} rollout */
export function failuresSoFar(rollout) {
  // Hosts cancelled by an abort have not failed.
  if (rollout.aborting || rollout.state === "aborted") return null;
  if (rollout.max_failures === "0" && !rollout.given_up.length) return null;
  const most = rollout.max_failures === "0" ? "none is allowed" : `up to ${rollout.max_failures} allowed`;
  const names = rollout.given_up.length ? `: ${listed(rollout.given_up, 3)}` : "";
  return `${count(rollout.given_up.length, "failure")} so far${names}; ${most}`;
}
