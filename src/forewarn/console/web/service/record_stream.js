/**
 * What happens on the server, as it happens, for all tabs of this browser.
 *
 * Browsers open six connections to a server at most, over all tabs: so one tab reads the stream and passes records on
 * to the others. When it is closed, the next one takes over where it was.
 */

import { pause, Refusal, Unreachable } from "./operator_api.js";

/** @typedef {import("./operator_api.js").OperatorApi} OperatorApi */
/** @typedef {import("../types").Record} Record */
/** @typedef {"connecting" | "live" | "lost"} Link */
/**
 * What one tab tells the others: records after `previous` and up to `number`, and how the link is.
 *
 * @typedef {{ link: Link, trouble: string, previous: number | null, number: number | null, records: Record[], opened: boolean }} Passed
 */

// A comment comes every 15 seconds when nothing happens; two that are missing are no accident.
const PATIENCE = 35_000;
const RETRY = 1000;
const NAME = "forewarn-stream";

/**
 * Announces `link` when the connection is made or lost, `records` (a CustomEvent with them) and `gap`: what was known
 * before may be out of date.
 */
export class RecordStream extends EventTarget {
  /** @type {Link} */
  link = "connecting";
  trouble = "";
  /** The number of the last record that this tab has heard of. @type {number | null} */
  #number = null;
  #api;
  #channel = new BroadcastChannel(NAME);
  #stopped = new AbortController();
  #isReader = false;

  /** @param {OperatorApi} api */
  constructor(api) {
    super();
    this.#api = api;
    this.#channel.onmessage = (message) => this.#hear(message.data);
  }

  /** Follow until stopped. */
  start() {
    this.#stopped.abort();
    this.#stopped = new AbortController();
    this.#number = null;
    const { signal } = this.#stopped;
    if (navigator.locks) {
      // The lock is held as long as this tab reads; the others wait for it, and listen to the channel.
      navigator.locks.request(NAME, { signal }, () => this.#read(signal)).catch(() => {});
      this.#channel.postMessage({ ask: true });
    } else this.#readWhileSeen(signal);
  }

  /** Follow no longer, as when somebody signs out. */
  stop() {
    this.#stopped.abort();
    this.#set("connecting", "");
  }

  /** @param {AbortSignal} signal */
  async #read(signal) {
    this.#isReader = true;
    try {
      while (!signal.aborted) {
        try {
          await this.#follow(signal);
          this.#tell("lost", "the server has closed the stream");
        } catch (error) {
          if (signal.aborted) return;
          this.#failed(error);
          if (error instanceof Refusal && error.status === 401) return;
        }
        await pause(RETRY);
      }
    } finally {
      this.#isReader = false;
    }
  }

  /** Where tabs cannot agree on one (a page without TLS from another machine), only the one that is seen reads. */
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
    if (error instanceof Refusal && error.status === 409) this.#number = null; // another store, as after a restore
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
      if (silence.signal.aborted) throw new Unreachable("the server has fallen silent");
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
    const previous = this.#number;
    const last = blocks.findLast((block) => block.id !== null);
    const records = /** @type {Record[]} */ (
      blocks.map((block) => block.data).filter((data) => data && "number" in data)
    );
    const isMissing = blocks.some((block) => block.event === "records-missing");
    /** @type {Passed} */
    const passed = {
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
    if (passed.ask) {
      if (this.#isReader) this.#tell(this.link, this.trouble);
      return;
    }
    if (this.#isReader || this.#stopped.signal.aborted) return;
    this.#apply(passed);
  }

  /** @param {Passed} passed */
  #apply(passed) {
    // After an interruption more may have changed than records tell: reasons end by themselves.
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
