/** The waves of open rollouts that are not announced yet, with their expected times. */

import { copy } from "../../service/connected.js";
import { FollowedRollout } from "../../service/followed_rollout.js";

/** @typedef {import("../../types").Rollout} Rollout */
/** @typedef {import("../../types").Wave} Wave */
/** @typedef {import("./lanes.js").Placed} Placed */
/** @typedef {Placed & { rollout: Rollout, wave: Wave, number: number }} WaveBar */

/** Dispatches `changed`. Empty if the caller may not see rollouts. */
export class ComingWaves extends EventTarget {
  /** @type {Map<string, { rollout: FollowedRollout, leave: AbortController }>} */
  #followed = new Map();

  /** @param {AbortSignal} signal  aborted when the view closes */
  constructor(signal) {
    super();
    copy.addEventListener("rollouts", () => this.#follow(), { signal });
    copy.addEventListener("loaded", () => this.#follow(), { signal });
    signal.addEventListener("abort", () => {
      for (const { leave } of this.#followed.values()) leave.abort();
    });
    this.#follow();
  }

  /** @returns {WaveBar[]} */
  values() {
    return [...this.#followed.values()].flatMap(({ rollout }) =>
      rollout.waves.flatMap((wave, place) =>
        barOf(/** @type {Rollout} */ (rollout.rollout), wave, place + 1),
      ),
    );
  }

  /** Follow exactly the rollouts that are open now. */
  #follow() {
    const open = new Set(copy.rollouts?.keys());
    for (const [id, { leave }] of this.#followed) {
      if (open.has(id)) continue;
      leave.abort();
      this.#followed.delete(id);
      this.dispatchEvent(new Event("changed"));
    }
    for (const id of open) {
      if (this.#followed.has(id)) continue;
      const leave = new AbortController();
      const rollout = new FollowedRollout(id, leave.signal);
      rollout.addEventListener("changed", () => this.dispatchEvent(new Event("changed")), {
        signal: leave.signal,
      });
      this.#followed.set(id, { rollout, leave });
    }
  }
}

/**
 * Return the bar of a wave. An announced wave has none, because its events have bars.
 *
 * @param {Rollout} rollout
 * @param {Wave} wave
 * @param {number} number
 * @returns {WaveBar[]}
 */
function barOf(rollout, wave, number) {
  if (wave.announced_at || !wave.announce_at || !wave.end_at) return [];
  return [
    {
      key: `${rollout.id} ${number}`,
      rollout,
      wave,
      number,
      from: Date.parse(wave.announce_at),
      notBefore: Date.parse(wave.start_at ?? wave.announce_at),
      to: Date.parse(wave.end_at),
      isOpen: true,
      row: 0,
      room: Infinity,
    },
  ];
}

/**
 * Whether a wave matches a search.
 *
 * @param {WaveBar} bar
 * @param {string} wanted  in lower case
 */
export const waveMatches = ({ rollout, wave }, wanted) =>
  ["rollout", rollout.id ?? "", rollout.action, ...wave.hosts].some((word) =>
    word.toLowerCase().includes(wanted),
  );
