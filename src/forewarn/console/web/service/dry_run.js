/** The dry run of what a form asks for: asked again when that or the fleet changes; the last answer wins. */

import { Refusal } from "./operator_api.js";
import { api, copy } from "./connected.js";

/** @typedef {import("../types").Rollout} Rollout */
/** @typedef {import("../types").RolloutBody} RolloutBody */

// Somebody who types is not done after every letter.
const TYPING = 250;
// A busy fleet changes all the time, and a plan of many hosts is work for the server, for which its writer waits.
const AT_MOST_EVERY = 1000;
const REST_FACTOR = 20;
// After so long a plan begins too far in the past, even if nothing has happened.
const GOOD_FOR = 60_000;
/** What a plan depends on. @type {readonly import("../types").Topic[]} */
const CONCERNS = [
  "machines",
  "groups",
  "hosts",
  "projects",
  "events",
  "orders",
  "rollouts",
  "holds",
  "clock",
];

/** Announces `changed`. */
export class DryRun extends EventTarget {
  /** The last answer, if it was not refused. @type {Rollout | null} */
  plan = null;
  /** Why there is none. @type {Error | null} */
  trouble = null;
  isAsking = false;
  /** Whether the fleet has changed, or time has passed, since the plan was made. */
  isOld = false;

  /** @type {RolloutBody | null} */
  #body = null;
  #text = "";
  #number = 0;
  #timer = 0;
  #askedAt = -Infinity;
  #took = 0;
  #lastTook = 0;

  /** @param {AbortSignal} ended */
  constructor(ended) {
    super();
    copy.addEventListener("records", (event) => this.#hear(/** @type {CustomEvent} */ (event).detail), {
      signal: ended,
    });
    copy.addEventListener("loaded", () => this.#outdated(), { signal: ended });
    const ageing = setInterval(() => this.#age(), 5000);
    ended.addEventListener("abort", () => {
      clearInterval(ageing);
      clearTimeout(this.#timer);
      this.#number++;
    });
  }

  /**
   * Ask for a plan, unless it is the one that was asked for last.
   *
   * @param {RolloutBody | null} body  null: nothing can be asked for now
   */
  want(body) {
    const text = JSON.stringify(body);
    if (text === this.#text) return;
    const isFirst = !this.#text;
    this.#text = text;
    this.#body = body;
    this.#number++;
    this.isAsking = body !== null;
    if (!body) this.plan = this.trouble = null;
    this.#plan(isFirst ? 0 : TYPING);
    this.#changed();
  }

  /** Ask again now. */
  async again() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    await this.#ask();
  }

  /** @param {import("../types").Record[]} records */
  #hear(records) {
    if (records.some((record) => record.topics.some((topic) => CONCERNS.includes(topic)))) this.#outdated();
  }

  #age() {
    if (!document.hidden && performance.now() - this.#askedAt > GOOD_FOR) this.#outdated();
  }

  #outdated() {
    if (!this.#body) return;
    this.isOld = this.plan !== null;
    // Who comes back is shown a new one: the plan ages meanwhile.
    if (!this.#timer && !document.hidden) {
      const every = Math.max(AT_MOST_EVERY, this.#took * REST_FACTOR);
      this.#plan(Math.max(TYPING, this.#askedAt + every - performance.now()));
    }
    this.#changed();
  }

  /** @param {number} milliseconds */
  #plan(milliseconds) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#ask();
    }, milliseconds);
  }

  async #ask() {
    const body = this.#body;
    if (!body) return;
    const number = ++this.#number;
    this.#askedAt = performance.now();
    this.isAsking = true;
    this.#changed();
    /** @type {{ plan: Rollout | null, trouble: Error | null }} */
    const found = { plan: null, trouble: null };
    try {
      found.plan = (await api.askByPost("/v1/rollouts", { body: { ...body, dry_run: true } })).rollout;
    } catch (error) {
      found.trouble = error instanceof Error ? error : new Error(String(error));
    }
    if (number !== this.#number) return;
    // One long answer may have waited for something else: two are a plan of many hosts.
    const took = performance.now() - this.#askedAt;
    this.#took = Math.min(took, this.#lastTook);
    this.#lastTook = took;
    this.isAsking = false;
    this.isOld = false;
    // While no server answers, the plan that stands is better than none.
    if (found.plan || found.trouble instanceof Refusal) this.plan = found.plan;
    this.trouble = found.trouble;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("changed"));
  }
}
