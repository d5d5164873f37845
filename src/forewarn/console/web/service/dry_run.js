/** The dry run of a rollout form. It repeats when the form or the fleet changes; the last answer counts. */

import { Refusal } from "./operator_api.js";
import { api, copy } from "./connected.js";

/** @typedef {import("../types").Rollout} Rollout */
/** @typedef {import("../types").RolloutBody} RolloutBody */

// Wait for a pause in typing.
const TYPING = 250;
// Planning many hosts is expensive and blocks the server's writer, and a busy fleet changes all the time.
const AT_MOST_EVERY = 1000;
const REST_FACTOR = 20;
// An older plan starts too far in the past, even if nothing has changed.
const GOOD_FOR = 60_000;
/** Changes of these topics make a plan outdated. @type {readonly import("../types").Topic[]} */
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

/** Fires `changed`. */
export class DryRun extends EventTarget {
  /** The last plan, unless it was refused. @type {Rollout | null} */
  plan = null;
  /** Why there is no plan. @type {Error | null} */
  trouble = null;
  isAsking = false;
  /** Whether the fleet has changed or the plan has aged since it was made. */
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
   * Request a plan, unless the last request had the same body.
   *
   * @param {RolloutBody | null} body  null if the form is incomplete
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

  /** Request a new plan now. */
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
    // A plan ages while the tab is hidden. It is made again when the tab is visible.
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
    // A single slow answer may have waited for other work. Two slow answers mean a large plan.
    const took = performance.now() - this.#askedAt;
    this.#took = Math.min(took, this.#lastTook);
    this.#lastTook = took;
    this.isAsking = false;
    this.isOld = false;
    // While the server is unreachable, keep the old plan.
    if (found.plan || found.trouble instanceof Refusal) this.plan = found.plan;
    this.trouble = found.trouble;
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event("changed"));
  }
}
