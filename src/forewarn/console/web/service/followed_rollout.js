/**
 * One rollout, kept up to date: from the live copy while it is open, from the API when it is over. Forecasts of coming
 * waves cost the server more, so they are requested only after changes, and with a minimum interval.
 */

import { api, copy } from "./connected.js";

/** @typedef {import("../types").Rollout} Rollout */
/** @typedef {import("../types").Wave} Wave */

const FORECAST_EVERY = 10_000;

/** Fires `changed`. */
export class FollowedRollout extends EventTarget {
  /** @type {Rollout | null} */
  rollout = null;
  /** @type {Error | null} */
  trouble = null;

  #id;
  #seen = "";
  /** Coming waves with their times, by their hosts. @type {Map<string, Wave>} */
  #expected = new Map();
  /** @type {string | null} */
  #endsAt = null;
  #askedAt = -Infinity;
  #timer = 0;

  /**
   * @param {string} id
   * @param {AbortSignal} ended
   */
  constructor(id, ended) {
    super();
    this.#id = id.toUpperCase();
    copy.addEventListener("rollouts", () => this.#look(), { signal: ended });
    copy.addEventListener("loaded", () => this.#plan(0), { signal: ended });
    ended.addEventListener("abort", () => clearTimeout(this.#timer));
    this.#look();
    this.#plan(0);
  }

  /** The waves, with expected times for those that are not over. @returns {Wave[]} */
  get waves() {
    return (this.rollout?.waves ?? []).map((wave) => {
      const expected = this.#expected.get(keyOf(wave));
      if (!expected || wave.ended_at) return wave;
      const { announce_at, start_at, end_at, stages } = expected;
      return { ...wave, announce_at, start_at, end_at: wave.end_at ?? end_at, stages };
    });
  }

  /** The expected end, if it can be predicted. */
  get endsAt() {
    return this.rollout && isOpen(this.rollout) ? this.#endsAt : null;
  }

  #look() {
    const listed = copy.rollouts?.get(this.#id);
    if (!listed) {
      // The rollout is over or does not exist. The API knows which.
      if (this.#seen) this.#plan(0);
      return;
    }
    const text = JSON.stringify(listed);
    if (text === this.#seen) return;
    this.#seen = text;
    this.rollout = listed;
    this.trouble = null;
    this.#plan(this.#askedAt + FORECAST_EVERY - performance.now());
    this.#changed();
  }

  /** @param {number} milliseconds */
  #plan(milliseconds) {
    if (this.#timer && milliseconds > 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), Math.max(0, milliseconds));
  }

  async #ask() {
    this.#askedAt = performance.now();
    try {
      const { rollout } = await api.get("/v1/rollouts/{id}", {
        path: { id: this.#id },
        query: { expected: true },
      });
      this.#expected = new Map(rollout.waves.map((wave) => [keyOf(wave), wave]));
      this.#endsAt = rollout.ends_at ?? rollout.waves.at(-1)?.end_at ?? null;
      // The live copy may be newer than this answer.
      if (!copy.rollouts?.has(this.#id) || !this.rollout) this.rollout = rollout;
      if (!isOpen(rollout)) {
        this.rollout = rollout;
        this.#seen = "";
      }
      this.trouble = null;
    } catch (error) {
      this.trouble = error instanceof Error ? error : new Error(String(error));
    }
    this.#timer = 0;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("changed"));
  }
}

/** @param {Wave} wave */
const keyOf = (wave) => wave.hosts.join(",");

/** @param {Rollout} rollout */
const isOpen = (rollout) => rollout.state === "running" || rollout.state === "paused";
