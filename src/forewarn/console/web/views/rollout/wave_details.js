/** The hosts and orders of each wave on the page of a rollout. */

import { badge, workAppearance } from "../../elements/appearance.js";
import { hostLine } from "../../elements/host_list.js";
import { hostLink, orderLink } from "../../elements/links.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {import("../../types").Wave} Wave */

// The most hosts with a line each, in a started wave and in other waves.
const MOST_UNDER_WAY = 12;
const MOST_LISTED = 3;
// If more waves than MOST_DONE are done, the page first shows only the last ones.
const DONE_SHOWN = 2;
const MOST_DONE = 6;

/**
 * List the hosts of a wave, with their orders.
 *
 * @param {Rollout} rollout
 * @param {Wave} wave
 */
export function hostsOfWave(rollout, wave) {
  const isUnderWay = wave.state !== "done" && wave.state !== "planned";
  if (wave.hosts.length > MOST_UNDER_WAY || (!isUnderWay && wave.hosts.length > MOST_LISTED))
    return hostLine(wave.hosts);
  return h(
    "ul",
    { class: "wave-orders" },
    wave.hosts.map((host, place) => {
      const id = wave.orders[place];
      const order = id ? copy.orders.get(id) : undefined;
      const state = order?.state ?? (rollout.hosts_done.includes(host) ? "done" : null);
      return h(
        "li",
        { key: host },
        hostLink(host),
        id && [" ", orderLink(id)],
        // The state of the wave is not repeated for each host.
        id && state && state !== wave.state && [" ", badge(workAppearance(state))],
      );
    }),
  );
}

/**
 * Return how many completed waves to hide.
 *
 * @param {readonly Wave[]} waves
 */
export function hiddenWaves(waves) {
  const at = waves.findIndex((wave) => wave.state !== "done");
  const done = at < 0 ? waves.length : at;
  return done > MOST_DONE ? done - DONE_SHOWN : 0;
}

/**
 * Return the latest NotBefore of a wave that has not started.
 *
 * @param {Wave} wave
 */
export function notBefore(wave) {
  let last = null;
  if (wave.started_at) return null;
  for (const event of copy.events.values()) {
    if (wave.orders.includes(event.order) && (!last || event.not_before > last)) last = event.not_before;
  }
  return last;
}
