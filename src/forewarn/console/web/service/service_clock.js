/** Service time: read from the server, and reckoned from there at its speed. */

/** @typedef {import("./operator_api.js").OperatorApi} OperatorApi */

// A clock that runs by itself is set right so often.
const READ_EVERY = 60_000;

/**
 * Tell how service time runs; slowed, it is ahead of the system's clock until the two meet.
 *
 * @param {{ kind: string, speed: number }} clock
 */
function kindOf({ kind, speed }) {
  if (kind === "manual") return kind;
  if (speed === 1) return "system";
  return kind === "system" ? "slowed" : "fast";
}

/** Announces `tick` about once a second while the page is seen, and whenever the clock was read. */
export class ServiceClock extends EventTarget {
  /** @type {"system" | "slowed" | "manual" | "fast"} */
  kind = "system";
  speed = 1;
  /** Whether somebody has signed in who may ask for it. */
  isFollowed = false;
  #now = Date.now();
  #readAt = performance.now();
  #askedAt = -Infinity;
  #api;

  /** @param {OperatorApi} api */
  constructor(api) {
    super();
    this.#api = api;
    setInterval(() => this.#tick(), 1000);
  }

  /** The service time now, in milliseconds. */
  now() {
    return this.#now + (performance.now() - this.#readAt) * this.speed;
  }

  /** Ask the server what time it is. */
  async read() {
    const asked = performance.now();
    this.#askedAt = asked;
    this.take(await this.#api.get("/v1/clock"), asked);
  }

  /**
   * Go by an answer of the server.
   *
   * @param {import("../types").Overview["clock"]} clock
   * @param {number} asked  when the server was asked, by `performance.now()`
   */
  take(clock, asked) {
    this.#askedAt = asked;
    this.kind = kindOf(clock);
    this.speed = clock.speed;
    // The answer was written about half-way.
    this.#readAt = (asked + performance.now()) / 2;
    this.#now = Date.parse(clock.now);
    this.dispatchEvent(new Event("tick"));
  }

  #tick() {
    if (document.hidden) return;
    // What was refused or lost is asked for again no sooner than what was answered.
    const isOld = performance.now() - this.#askedAt > READ_EVERY;
    if (this.isFollowed && this.speed && isOld) this.read().catch(() => {});
    this.dispatchEvent(new Event("tick"));
  }
}
