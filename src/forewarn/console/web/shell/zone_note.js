/** The footer of every view: the time zone of its times. */

import { define, LiveElement } from "../page/live_element.js";
import { preferences } from "../page/preferences.js";
import { h } from "../page/tree.js";
import { clock } from "../service/connected.js";

const HOUR = 60;

class ZoneNote extends LiveElement {
  opened() {
    this.watch(preferences, "changed");
    this.watch(clock, "tick");
  }

  drawn() {
    return h(
      "p",
      { class: "small muted" },
      `All times are in ${zoneInWords()}, except where another zone is named.`,
    );
  }
}

function zoneInWords() {
  if (preferences.zone === "utc") return "UTC";
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const ahead = -new Date(clock.now()).getTimezoneOffset();
  if (zone === "UTC") return "UTC";
  if (!ahead) return `your local time (${zone}, now UTC)`;
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / HOUR), Math.abs(ahead) % HOUR];
  const offset = `${ahead < 0 ? "\u2212" : "+"}${hours}${minutes ? `:${String(minutes).padStart(2, "0")}` : ""}`;
  return `your local time (${zone}, now UTC${offset})`;
}

define("fw-zone-note", ZoneNote);
