/** `<fw-brief-time>`: a time of today without its date, for sentences. */

import { brieflyAt, dateTime } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { preferences } from "../page/preferences.js";
import { h } from "../page/tree.js";
import { clock } from "../service/connected.js";

const WHOLE_MINUTE = /^(\d\d:\d\d):00$/;

class BriefTime extends LiveElement {
  #at = "";

  get at() {
    return this.#at;
  }

  set at(value) {
    this.#at = value;
    this.redraw();
  }

  opened() {
    this.watch(preferences, "changed");
    this.watch(clock, "tick");
  }

  drawn() {
    const text = brieflyAt(this.at, clock.now());
    return h("time", { datetime: this.at, title: dateTime(this.at) }, text.replace(WHOLE_MINUTE, "$1"));
  }
}

define("fw-brief-time", BriefTime);

/** @param {string} at */
export const briefTime = (at) => h("fw-brief-time", { ".at": at });
