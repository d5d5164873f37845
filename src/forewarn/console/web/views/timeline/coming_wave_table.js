/** The coming waves of rollouts as a table. */

import { hostLink, rolloutLink } from "../../elements/links.js";
import { time } from "../../elements/times.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { h } from "../../page/tree.js";

/** @typedef {import("./coming_waves.js").WaveBar} WaveBar */

const HOSTS_LISTED = 12;

/** @param {WaveBar[]} bars */
export function comingWaveTable(bars) {
  if (!bars.length) return null;
  const columns = ["Rollout", "Wave", "Action", "Hosts", "Announced", "Starts", "Ends"];
  return h(
    "section",
    { class: "stack", key: "waves", "aria-labelledby": "coming-waves" },
    h("h2", { id: "coming-waves" }, "Coming waves of rollouts"),
    stackingTable("Coming waves", columns, bars.map(row), {
      caption: "Expected waves in this range",
      isCard: true,
    }),
  );
}

/** @param {WaveBar} bar */
function row({ key, rollout, wave, number }) {
  const shown = wave.hosts.slice(0, HOSTS_LISTED);
  const more = wave.hosts.length - shown.length;
  return h(
    "tr",
    { key },
    cell("Rollout", rolloutLink(rollout.id ?? "")),
    cell("Wave", String(number)),
    cell("Action", rollout.action),
    cell("Hosts", [
      shown.map((name, place) => [place > 0 && ", ", hostLink(name)]),
      more > 0 && ` and ${more} more`,
    ]),
    cell("Announced", about(wave.announce_at)),
    cell("Starts", about(wave.start_at)),
    cell("Ends", about(wave.end_at)),
  );
}

/** @param {string | null} at */
const about = (at) => at && ["about ", time(at)];
