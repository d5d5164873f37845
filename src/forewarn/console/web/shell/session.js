/** Who has signed in, in this tab and all others. */

import { Refusal } from "../service/operator_api.js";
import { api, copy } from "../service/connected.js";

/** @typedef {"starting" | "signed-in" | "signed-out" | "away"} SessionState */

const RETRY = 1000;

/** Announces `changed`. */
class Session extends EventTarget {
  /** @type {SessionState} */
  state = "starting";
  /** Whether somebody was signed in and is no longer. */
  hasEnded = false;
  #tabs = new BroadcastChannel("forewarn-session");

  /** Find out who asks, and follow the fleet as they do. */
  start() {
    api.addEventListener("signed-out", () => this.#ended());
    this.#tabs.onmessage = () => this.#look();
    this.#look();
  }

  /** Whether the server knows callers by tokens; else everybody is its operator. */
  get hasToken() {
    return api.csrf !== null;
  }

  /** @param {string} token */
  async signIn(token) {
    copy.start(await api.signIn(token));
    this.hasEnded = false;
    this.#set("signed-in");
    this.#tabs.postMessage("signed-in");
  }

  async signOut() {
    await api.signOut();
    copy.stop();
    this.#set("signed-out");
    this.#tabs.postMessage("signed-out");
  }

  async #look() {
    try {
      const caller = await api.session();
      if (copy.caller) copy.stop();
      copy.start(caller);
      this.#set("signed-in");
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return; // `signed-out` has told
      this.#set("away");
      setTimeout(() => this.#look(), RETRY);
    }
  }

  #ended() {
    if (this.state === "signed-out") return;
    this.hasEnded = copy.caller !== null;
    api.csrf = null;
    copy.stop();
    this.#set("signed-out");
    if (this.hasEnded) this.#tabs.postMessage("signed-out");
  }

  /** @param {SessionState} state */
  #set(state) {
    this.state = state;
    this.dispatchEvent(new Event("changed"));
  }
}

export const session = new Session();
