/** Who has signed in, in this tab and all others. */

import { api, copy } from "../service/connected.js";
import { identity } from "../service/fleet_copy.js";
import { Refusal } from "../service/operator_api.js";

/** @typedef {"starting" | "signed-in" | "signed-out" | "away"} SessionState */
/** @typedef {import("../types").Caller} Caller */

const RETRY = 1000;

/** Announces `changed`. */
class Session extends EventTarget {
  /** @type {SessionState} */
  state = "starting";
  /** Whether somebody was signed in and is no longer, without having asked for it here. */
  hasEnded = false;
  /** Whether the page was open to everybody until the server's first token was made. */
  hasBegunToAsk = false;
  #tabs = new BroadcastChannel("forewarn-session");
  /** For whom this page has shown anything. */
  #shownTo = "";
  // Only the newest look counts: an answer may be older than who has signed in since.
  #looks = 0;

  /** Find out who asks, and follow the fleet as they do. */
  start() {
    // A call may have been under way while the session changed: ask before anybody is shown the door.
    api.addEventListener("signed-out", () => this.#look());
    this.#tabs.onmessage = () => this.#look();
    this.#look();
  }

  /** Whether the server knows callers by tokens; else everybody is its operator. */
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
    // What is shown stays while the server is away.
    if (!copy.caller) this.#set("away");
    setTimeout(() => look === this.#looks && this.#look(), RETRY);
  }

  /** @param {Caller} caller */
  #follow(caller) {
    // A page that has shown one person's fleet keeps nothing of it for the next.
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
    // Nobody who has signed out is asked anything.
    // A secret that is shown once stays until it is closed: the first token's ends this session.
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
