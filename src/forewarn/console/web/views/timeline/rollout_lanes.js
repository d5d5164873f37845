/** A lane for each rollout with coming waves. */

import { labelRoom } from "./event_bar.js";
import { packed } from "./lanes.js";
import { waveSubject } from "./wave_card.js";

/** @typedef {import("./coming_waves.js").WaveBar} WaveBar */
/** @typedef {import("./lanes.js").Packed<WaveBar> & { key: string, rollout: import("../../types").Rollout }} RolloutLane */

// Consecutive waves may use up to this many rows to fit their labels.
const ROWS_FOR_LABELS = 4;
// The gap between two bars without labels, in pixels.
const GAP = 2;

/**
 * @param {WaveBar[]} waves  in the order of time
 * @param {(pixels: number) => number} timeOf  converts pixels to milliseconds
 * @param {Set<string>} opened  lanes that show all their rows
 * @returns {RolloutLane[]}
 */
export function rolloutLanesOf(waves, timeOf, opened) {
  return [...Map.groupBy(waves, ({ rollout }) => `rollout ${rollout.id}`)].map(([key, bars]) => ({
    key,
    rollout: /** @type {WaveBar} */ (bars[0]).rollout,
    ...withLabels(bars, timeOf, opened.has(key)),
  }));
}

/**
 * @param {WaveBar[]} bars
 * @param {(pixels: number) => number} timeOf
 * @param {boolean} isOpened
 */
function withLabels(bars, timeOf, isOpened) {
  const letters = Math.max(...bars.map((bar) => waveSubject(bar).length));
  const roomy = packed(bars, timeOf(labelRoom(letters)), true);
  return roomy.rows <= ROWS_FOR_LABELS ? roomy : packed(bars, timeOf(GAP), isOpened);
}
