/**
 * The server's stream of records, shared by all tabs of this browser.
 *
 * Browsers limit the connections to a server, usually to six over all tabs. So one tab reads the stream and sends the
 * records to the others. When it closes, the next tab continues. When it is frozen, as phones do, a visible tab steals
 * the lock.
 */

import { Refusal, Unreachable } from "./operator_api.js";

/** @typedef {import("./operator_api.js").OperatorApi} OperatorApi */
/** @typedef {import("../types").Record} Record */
/** @typedef {"connecting" | "live" | "lost"} Link */
/**
 * A message to the other tabs: the records after `previous` up to `number`, and the state of the connection.
 *
 * @typedef {{ of: string, link: Link, trouble: string, previous: number | null, number: number | null, records: Record[], opened: boolean }} Passed
 */

// The server sends a comment every 15 seconds. This allows two of them to be missing.
const PATIENCE = 35_000;
// Delays between retries grow by the factor up to the longest. A random part keeps consoles from reconnecting to a
// restarted server all at once.
const RETRY = 1000;
const RETRY_FACTOR = 1.5;
const LONGEST_RETRY = 15_000;
const CHANCE = 0.3;
const LOOK_FOR_SILENCE = 5000;
const NAME = "forewarn-stream";

/**
 * Fires `link` when the connection changes, `records` with the records as its `detail`, and `gap` when the copy may be
 * out of date.
 */
export class RecordStream extends EventTarget {
  /** @type {Link} */
  link = "connecting";
  trouble = "";
  /** @type {number | null} */
  #number = null;
  #api;
  #channel = new BroadcastChannel(NAME);
  #stopped = new AbortController();
  /** Identifies the caller. Messages for other callers are ignored. */
  #of = "";
  // Counted, because a reader may still be ending when the next one starts.
  #readers = 0;
  #heardAt = performance.now();
  /** Failed attempts in a row. */
  #failures = 0;

  /** @param {OperatorApi} api */
  constructor(api) {
    super();
    this.#api = api;
    this.#channel.onmessage = (message) => this.#hear(message.data);
  }

  /** The number of the newest record that this tab received, or of the newest record when it connected. */
  get number() {
    return this.#number ?? 0;
  }

  /**
   * Follow until stopped.
   *
   * @param {string} of  identifies the caller
   */
  start(of) {
    this.#stopped.abort();
    this.#stopped = new AbortController();
    this.#number = null;
    this.#of = of;
    this.#heardAt = performance.now();
    const { signal } = this.#stopped;
    if (navigator.locks) {
      this.#queue(signal);
      this.#channel.postMessage({ of, ask: true });
      const timer = setInterval(() => this.#lookForSilence(signal), LOOK_FOR_SILENCE);
      signal.addEventListener("abort", () => clearInterval(timer));
    } else this.#readWhileSeen(signal);
  }

  /** Stop following, for example after sign-out. */
  stop() {
    this.#stopped.abort();
    this.#set("connecting", "");
  }

  /**
   * Read while this tab has the lock. The other tabs wait for the lock and listen to the channel.
   *
   * @param {AbortSignal} signal
   * @param {{ isStolen?: boolean }} [how]
   */
  #queue(signal, { isStolen = false } = {}) {
    const mine = new AbortController();
    const both = AbortSignal.any([signal, mine.signal]);
    // A request that steals the lock cannot take a signal.
    const options = isStolen ? { steal: true } : { signal };
    navigator.locks
      .request(NAME, options, () => (signal.aborted ? undefined : this.#read(both)))
      .catch(() => {
        // Another tab stole the lock because this one was frozen.
        mine.abort();
        if (!signal.aborted) this.#queue(signal);
      });
  }

  /** @param {AbortSignal} signal */
  #lookForSilence(signal) {
    if (this.#readers || document.hidden || performance.now() - this.#heardAt < PATIENCE) return;
    this.#heardAt = performance.now();
    this.#queue(signal, { isStolen: true });
  }

  /** @param {AbortSignal} signal */
  async #read(signal) {
    this.#readers += 1;
    try {
      while (!signal.aborted) {
        try {
          await this.#follow(signal);
          this.#tell("lost", "the server closed the stream");
          await rest(waitFor(0, 0), signal);
        } catch (error) {
          if (signal.aborted) return;
          this.#failed(error);
          if (error instanceof Refusal && error.status === 401) return;
          await rest(waitFor(this.#failures, error instanceof Refusal ? error.retryAfter : 0), signal);
          this.#failures += 1;
        }
      }
    } finally {
      this.#readers -= 1;
    }
  }

  /** Without TLS there are no locks (except on localhost), so only the visible tab reads. */
  #readWhileSeen(/** @type {AbortSignal} */ signal) {
    let reading = new AbortController();
    const look = () => {
      reading.abort();
      reading = new AbortController();
      if (!document.hidden) this.#read(AbortSignal.any([signal, reading.signal]));
    };
    document.addEventListener("visibilitychange", look, { signal });
    look();
  }

  /** @param {unknown} error */
  #failed(error) {
    if (error instanceof Refusal && error.status === 409) this.#number = null; // the store was replaced, for example restored
    const message = error instanceof Refusal || error instanceof Unreachable ? error.message : String(error);
    this.#tell("lost", message);
  }

  /** @param {AbortSignal} signal */
  async #follow(signal) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), PATIENCE);
    try {
      const since = this.#number === null ? "" : `?since=${this.#number}`;
      const response = await this.#api.open(`/v1/stream${since}`, AbortSignal.any([signal, silence.signal]));
      const reader = /** @type {ReadableStream<any>} */ (response.body)
        .pipeThrough(new TextDecoderStream())
        .getReader();
      let rest = "";
      let isOpened = false;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => silence.abort(), PATIENCE);
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop() ?? "";
        if (blocks.length) this.#took(blocks.map(parse), !isOpened);
        isOpened ||= blocks.length > 0;
      }
    } catch (error) {
      if (silence.signal.aborted) throw new Unreachable("the server sends no data");
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * @param {Block[]} blocks
   * @param {boolean} opened
   */
  #took(blocks, opened) {
    this.#failures = 0;
    const previous = this.#number;
    const last = blocks.findLast((block) => block.id !== null);
    const records = /** @type {Record[]} */ (
      blocks.map((block) => block.data).filter((data) => data && "number" in data)
    );
    const isMissing = blocks.some((block) => block.event === "records-missing");
    /** @type {Passed} */
    const passed = {
      of: this.#of,
      link: "live",
      trouble: "",
      previous: isMissing ? -1 : previous,
      number: last?.id ?? previous,
      records,
      opened,
    };
    this.#channel.postMessage(passed);
    this.#apply(passed);
  }

  /**
   * @param {Link} link
   * @param {string} trouble
   */
  #tell(link, trouble) {
    this.#channel.postMessage({
      of: this.#of,
      link,
      trouble,
      previous: this.#number,
      number: this.#number,
      records: [],
      opened: false,
    });
    this.#set(link, trouble);
  }

  /** @param {Passed & { ask?: boolean }} passed */
  #hear(passed) {
    // Another caller may have signed in a moment ago. Ignore records for other callers.
    if (passed.of !== this.#of || this.#stopped.signal.aborted) return;
    if (passed.ask) {
      if (this.#readers) this.#tell(this.link, this.trouble);
      return;
    }
    this.#heardAt = performance.now();
    if (this.#readers) return;
    this.#apply(passed);
  }

  /** @param {Passed} passed */
  #apply(passed) {
    // Reasons can end without a record, so read again after an interruption.
    const isGap = passed.opened || passed.previous !== this.#number;
    this.#number = passed.number;
    this.#set(passed.link, passed.trouble);
    if (isGap) this.dispatchEvent(new Event("gap"));
    if (passed.records.length) this.dispatchEvent(new CustomEvent("records", { detail: passed.records }));
  }

  /**
   * @param {Link} link
   * @param {string} trouble
   */
  #set(link, trouble) {
    if (link === this.link && trouble === this.trouble) return;
    this.link = link;
    this.trouble = trouble;
    this.dispatchEvent(new Event("link"));
  }
}

/**
 * Return the milliseconds until the next attempt: at least what the server asks for.
 *
 * @param {number} failures  previous failures in a row
 * @param {number} retryAfter  seconds
 */
function waitFor(failures, retryAfter) {
  const longer = Math.min(RETRY * RETRY_FACTOR ** failures, LONGEST_RETRY) * (1 - CHANCE * Math.random());
  return Math.max(longer, retryAfter * 1000);
}

/**
 * Wait, or stop waiting when the signal aborts.
 *
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 */
function rest(milliseconds, signal) {
  const over = new AbortController();
  return new Promise((done) => {
    const go = () => {
      over.abort();
      done(undefined);
    };
    const timer = setTimeout(go, milliseconds);
    over.signal.addEventListener("abort", () => clearTimeout(timer));
    signal.addEventListener("abort", go, { signal: over.signal });
  });
}

/** @typedef {{ id: number | null, event: string | null, data: any }} Block */

/**
 * Parse one server-sent event.
 *
 * @param {string} text
 * @returns {Block}
 */
function parse(text) {
  /** @type {Block} */
  const block = { id: null, event: null, data: null };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const value = line.slice(colon + 1).trimStart();
    if (line.startsWith("id:")) block.id = Number(value);
    else if (line.startsWith("event:")) block.event = value;
    else if (line.startsWith("data:")) block.data = JSON.parse(value);
  }
  return block;
}
