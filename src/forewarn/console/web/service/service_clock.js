/** Service time: read from the server, then advanced locally at its speed. */

/** @typedef {import("./operator_api.js").OperatorApi} OperatorApi */

// A running clock is read again at this interval.
const READ_EVERY = 60_000;

/**
 * Return the kind of clock. A slowed clock is ahead of the system clock until both agree.
 *
 * @param {{ kind: string, speed: number }} clock
 */
function kindOf({ kind, speed }) {
  if (kind === "manual") return kind;
  if (speed === 1) return "system";
  return kind === "system" ? "slowed" : "fast";
}

/** Fires `tick` about once a second while the tab is visible, and after each read. */
export class ServiceClock extends EventTarget {
  /** @type {"system" | "slowed" | "manual" | "fast"} */
  kind = "system";
  speed = 1;
  /** Whether a signed-in caller may read the clock. */
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

  /** Read the time from the server. */
  async read() {
    const asked = performance.now();
    this.#askedAt = asked;
    this.take(await this.#api.get("/v1/clock"), asked);
  }

  /**
   * Set the clock from the server's answer.
   *
   * @param {import("../types").Overview["clock"]} clock
   * @param {number} asked  the time of the request, from `performance.now()`
   */
  take(clock, asked) {
    this.#askedAt = asked;
    this.kind = kindOf(clock);
    this.speed = clock.speed;
    // Assume that the server wrote the answer half-way between request and response.
    this.#readAt = (asked + performance.now()) / 2;
    this.#now = Date.parse(clock.now);
    this.dispatchEvent(new Event("tick"));
  }

  #tick() {
    if (document.hidden) return;
    // A failed read is repeated at the normal interval.
    const isOld = performance.now() - this.#askedAt > READ_EVERY;
    if (this.isFollowed && this.speed && isOld) this.read().catch(() => {});
    this.dispatchEvent(new Event("tick"));
  }
}
