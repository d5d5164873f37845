/** The outline of a coming wave: expected notice as a low bar, expected work as a high bar. */

import { partsOf } from "../../elements/wave_parts.js";
import { svg } from "../../page/tree.js";
import { address } from "../../page/router.js";
import { HEIGHT, labelShape, labelBeside, OUTSIDE, ROW_HEIGHT, TOP } from "./event_bar.js";
import { waveSubject, waveWords } from "./wave_card.js";

/** @typedef {import("./coming_waves.js").WaveBar} WaveBar */
/** @typedef {import("./timeline_chart.js").Picture} Picture */

// The height of the notice, in pixels.
const NOTICE_HEIGHT = 8;

/**
 * @param {WaveBar} bar
 * @param {Picture} picture
 * @param {(at: number) => number} x
 */
export function waveLink(bar, picture, x) {
  const { key, rollout, wave } = bar;
  const label = labelBeside([waveSubject(bar), `wave ${bar.number}`], bar, x, picture.width);
  /** @param {number} at */
  const cut = (at) => Math.min(picture.width + OUTSIDE, Math.max(-OUTSIDE, x(at)));
  const from = cut(bar.from);
  return svg(
    "g",
    { key, class: "bar wave", "data-tone": "idle", transform: `translate(0 ${bar.row * ROW_HEIGHT})` },
    svg(
      "a",
      {
        "data-bar": key,
        href: address("/rollouts/{id}", { id: rollout.id ?? "" }),
        tabindex: picture.current === key ? 0 : -1,
        "aria-label": waveWords(bar),
        "aria-describedby": picture.card?.bar.key === key ? "bar-card" : null,
      },
      svg("rect", {
        class: "bar-hit",
        x: from - 3,
        y: 0,
        width: Math.max(cut(bar.to), label?.to ?? 0) - from + 6,
        height: ROW_HEIGHT,
      }),
      partsOf(wave, bar.from).map((part, place) => {
        const height = part.kind === "notice" ? NOTICE_HEIGHT : HEIGHT;
        return svg("rect", {
          key: place,
          class: `wave-${part.kind}`,
          x: cut(part.from),
          y: TOP + (HEIGHT - height) / 2,
          width: Math.max(3, cut(part.to) - cut(part.from)),
          height,
          rx: 2,
        });
      }),
    ),
    labelShape(label),
  );
}
