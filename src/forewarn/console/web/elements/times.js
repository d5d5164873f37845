/** Times in views: `<fw-time>` shows one in the chosen zone, `<fw-countdown>` its distance from now. */

import { brieflyAt, dateTime, distance, untilStart } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { preferences } from "../page/preferences.js";
import { h } from "../page/tree.js";
import { clock } from "../service/connected.js";

const WHOLE_MINUTE = /^(\d\d:\d\d):00$/;

class Time extends LiveElement {
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
  }

  drawn() {
    const other = preferences.zone === "utc" ? "local" : "utc";
    return h("time", { datetime: this.at, title: dateTime(this.at, other) }, dateTime(this.at));
  }
}

class Countdown extends Time {
  opened() {
    super.opened();
    this.watch(clock, "tick");
  }

  drawn() {
    return h("time", { datetime: this.at, title: dateTime(this.at), class: "number" }, this.written());
  }

  written() {
    return distance(Date.parse(this.at), clock.now());
  }
}

class StartCountdown extends Countdown {
  written() {
    return untilStart(Date.parse(this.at), clock.now());
  }
}

/** A time in a sentence: without the date if it is today. */
class BriefTime extends Countdown {
  drawn() {
    const text = brieflyAt(this.at, clock.now());
    return h("time", { datetime: this.at, title: dateTime(this.at) }, text.replace(WHOLE_MINUTE, "$1"));
  }
}

define("fw-time", Time);
define("fw-countdown", Countdown);
define("fw-start-countdown", StartCountdown);
define("fw-brief-time", BriefTime);

/**
 * Draw a time; nothing for null.
 *
 * @param {string | null | undefined} at
 */
export const time = (at) => (at ? h("fw-time", { ".at": at }) : null);

/**
 * Draw the distance of a time from now.
 *
 * @param {string | null | undefined} at
 */
export const countdown = (at) => (at ? h("fw-countdown", { ".at": at }) : null);

/**
 * Draw when an event that has not started may start.
 *
 * @param {string} at  the event's NotBefore
 */
export const startCountdown = (at) => h("fw-start-countdown", { ".at": at });

/**
 * Draw a time in a sentence: without the date if it is today.
 *
 * @param {string} at
 */
export const briefTime = (at) => h("fw-brief-time", { ".at": at });
