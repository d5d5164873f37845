/** A machine as a tile: its shape, words and colour say how it is, and it leads to its page. */

import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { machineKey } from "../service/machine_shelf.js";
import { machineAppearance, shownEvent } from "./appearance.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("../page/tree.js").Described} Described */

// What the arrow keys move between.
const TILES = ".tile, .host-grid-cell";

/** What was last described of a machine, for as long as it is as it was. @type {WeakMap<Machine, { words: string, tile: Described }>} */
const described = new WeakMap();

/**
 * @param {Machine} machine
 * @returns {Described}
 */
export function machineTile(machine) {
  const events = copy.eventsOf(machine);
  const look = machineAppearance(machine, events);
  const event = machine.state === "running" && shownEvent(events);
  const words = event ? `${event.type} ${look.label}` : look.label;
  const before = described.get(machine);
  if (before?.words === words) return before.tile;
  const query = copy.projects.size > 1 ? { project: machine.project } : {};
  const key = machineKey(machine.project, machine.name);
  const parts = nameParts(machine.name);
  const tile = h(
    "a",
    {
      key,
      class: "tile",
      href: address("/machines/{name}", { name: machine.name }, query),
      tabindex: "-1",
      "data-machine": key,
      "data-tone": look.tone,
      "data-look": look.label,
      // A name in two parts would be read as two words.
      "aria-label": parts.length > 1 ? `${machine.name} ${words}` : null,
    },
    h("span", { class: "glyph", "aria-hidden": "true" }, look.glyph),
    h("span", { class: "name" }, parts),
    " ",
    h("span", { class: "tile-state" }, words),
  );
  described.set(machine, { words, tile });
  return tile;
}

// Names of a group differ at their ends: where a name has no room, so many letters of its end are shown.
const END = 8;
// A name of so many letters has room on every tile.
const SHORT = 12;

/** Part a name, so that a tile that is too narrow shortens it in the middle. @param {string} name */
function nameParts(name) {
  const letters = [...name];
  if (letters.length <= SHORT) return [name];
  const [begin, end] = [letters.slice(0, -END), letters.slice(-END)];
  return [h("span", { class: "name-begin" }, begin.join("")), h("span", null, end.join(""))];
}

/**
 * Let the arrow keys move between the tiles of an element, of which Tab reaches one: pass this as `onkeydown`.
 *
 * @param {KeyboardEvent} press
 */
export function moveBetweenTiles(press) {
  const from = /** @type {HTMLElement} */ (press.target).closest?.(TILES);
  if (!from || press.ctrlKey || press.metaKey || press.altKey) return;
  const parent = /** @type {HTMLElement} */ (press.currentTarget);
  const tiles = /** @type {HTMLElement[]} */ ([...parent.querySelectorAll(TILES)]);
  const to = target(press.key, tiles, /** @type {HTMLElement} */ (from));
  if (!to) return;
  press.preventDefault();
  to.focus();
}

/**
 * Let Tab reach one tile of an element: that which last had the focus, or the first.
 *
 * @param {HTMLElement} parent
 * @param {Element | null} [focused]
 */
export function keepOneReachable(parent, focused = null) {
  const before = parent.querySelector(`:is(${TILES})[tabindex="0"]`);
  const now = focused ?? before ?? parent.querySelector(TILES);
  if (before === now) return;
  before?.setAttribute("tabindex", "-1");
  now?.setAttribute("tabindex", "0");
}

/**
 * @param {string} key
 * @param {HTMLElement[]} tiles
 * @param {HTMLElement} from
 */
function target(key, tiles, from) {
  const place = tiles.indexOf(from);
  switch (key) {
    case "ArrowRight":
      return tiles[place + 1];
    case "ArrowLeft":
      return tiles[place - 1];
    case "ArrowDown":
      return nearest(tiles, from, 1);
    case "ArrowUp":
      return nearest(tiles, from, -1);
    case "Home":
      return tiles[0];
    case "End":
      return tiles.at(-1);
    default:
      return undefined;
  }
}

/**
 * Find the tile that is next above or below.
 *
 * @param {HTMLElement[]} tiles
 * @param {HTMLElement} from
 * @param {1 | -1} direction
 */
function nearest(tiles, from, direction) {
  const here = from.getBoundingClientRect();
  let found;
  let least = Infinity;
  for (const tile of tiles) {
    const there = tile.getBoundingClientRect();
    const down = (there.top - here.top) * direction;
    if (down < here.height / 2) continue;
    // A line further away counts more than any distance along the line.
    const far = down * 1e4 + Math.abs(there.left - here.left);
    if (far < least) [found, least] = [tile, far];
  }
  return found;
}
