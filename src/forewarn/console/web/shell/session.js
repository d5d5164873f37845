/** The session of this browser, shared by all tabs. */

import { api, copy } from "../service/connected.js";
import { identity } from "../service/fleet_copy.js";
import { Refusal } from "../service/operator_api.js";

/** @typedef {"starting" | "signed-in" | "signed-out" | "away"} SessionState */
/** @typedef {import("../types").Caller} Caller */

const RETRY = 1000;

/** Fires `changed`. */
class Session extends EventTarget {
  /** @type {SessionState} */
  state = "starting";
  /** Whether a session ended although the user did not sign out here. */
  hasEnded = false;
  /** Whether the server had no tokens until its first token was created. */
  hasBegunToAsk = false;
  #tabs = new BroadcastChannel("forewarn-session");
  /** The caller whose fleet this tab has shown. */
  #shownTo = "";
  // Only the newest check counts: an older answer may be from before a sign-in.
  #looks = 0;

  /** Find the caller, and follow the fleet. */
  start() {
    // A call may have failed because the session changed meanwhile. Check before signing out.
    api.addEventListener("signed-out", () => this.#look());
    this.#tabs.onmessage = () => this.#look();
    this.#look();
  }

  /** Whether the server requires tokens. Without tokens, every caller is an operator. */
  get hasToken() {
    return api.csrf !== null;
  }

  /** @param {string} token */
  async signIn(token) {
    const caller = await api.signIn(token);
    this.#looks += 1;
    this.#tabs.postMessage("signed-in");
    this.#follow(caller);
  }

  async signOut() {
    await api.signOut();
    this.#looks += 1;
    this.#end({ isAsked: true });
    this.#tabs.postMessage("signed-out");
  }

  async #look() {
    const look = ++this.#looks;
    try {
      const caller = await api.session();
      if (look === this.#looks) this.#follow(caller);
    } catch (error) {
      if (look !== this.#looks) return;
      if (error instanceof Refusal && error.status === 401) this.#end({ isAsked: false });
      else this.#lookAgain(look);
    }
  }

  /** @param {number} look */
  #lookAgain(look) {
    // While the server is unreachable, the view stays.
    if (!copy.caller) this.#set("away");
    setTimeout(() => look === this.#looks && this.#look(), RETRY);
  }

  /** @param {Caller} caller */
  #follow(caller) {
    // Never show data of one caller to the next.
    if (this.#shownTo && this.#shownTo !== identity(caller)) {
      location.reload();
      return;
    }
    this.#shownTo = identity(caller);
    if (copy.caller) copy.stop();
    copy.start(caller);
    this.hasEnded = false;
    this.#set("signed-in");
  }

  /** @param {{ isAsked: boolean }} how */
  #end({ isAsked }) {
    if (copy.caller) this.hasBegunToAsk = !isAsked && !this.hasToken;
    this.hasEnded = !isAsked && (this.hasEnded || copy.caller !== null);
    api.csrf = null;
    copy.stop();
    // Close all questions. A secret that is shown once stays: creating the first token ends this session.
    for (const dialog of document.querySelectorAll("dialog"))
      if (!(/** @type {any} */ (dialog.parentElement).staysOpen)) dialog.close();
    this.#set("signed-out");
  }

  /** @param {SessionState} state */
  #set(state) {
    this.state = state;
    this.dispatchEvent(new Event("changed"));
  }
}

export const session = new Session();
