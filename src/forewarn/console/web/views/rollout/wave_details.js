/** What the page of a rollout shows of its waves: their hosts with their orders, and which of them are shown at all. */

import { badge, workAppearance } from "../../elements/appearance.js";
import { hostLine } from "../../elements/host_list.js";
import { hostLink, orderLink } from "../../elements/links.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {import("../../types").Wave} Wave */

// Hosts of which each has a line: of a wave under way, and of others.
const MOST_UNDER_WAY = 12;
const MOST_LISTED = 3;
// Of waves that are done only the last are shown at first: what happens now is below them.
const DONE_SHOWN = 2;
const MOST_DONE = 6;

/**
 * Name the hosts of a wave, with the orders of those that have begun.
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
        // What the wave says already is not said of each host again.
        id && state && state !== wave.state && [" ", badge(workAppearance(state))],
      );
    }),
  );
}

/**
 * Count the waves at the beginning that are done and would be in the way.
 *
 * @param {readonly Wave[]} waves
 */
export function hiddenWaves(waves) {
  const at = waves.findIndex((wave) => wave.state !== "done");
  const done = at < 0 ? waves.length : at;
  return done > MOST_DONE ? done - DONE_SHOWN : 0;
}

/**
 * Return when the guests of an announced wave expect it to start at the latest.
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
