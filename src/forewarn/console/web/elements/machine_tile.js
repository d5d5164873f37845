/** A tile for a machine: it shows the state by shape, text and colour, and links to the machine's view. */

import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { machineKey } from "../service/machine_shelf.js";
import { machineAppearance, shownEvent } from "./appearance.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("../page/tree.js").Described} Described */

// The arrow keys move between these elements.
const TILES = ".tile, .host-grid-cell";

/** The last tile of each machine, for reuse while nothing has changed. @type {WeakMap<Machine, { words: string, tile: Described }>} */
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
      // Screen readers would read a name in two parts as two words.
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

// The names of a group differ at their ends. If there is no room, the tile shows this many letters of the end.
const END = 8;
// Names up to this length fit on every tile.
const SHORT = 12;

/** Split a name, so that a narrow tile shortens it in the middle. @param {string} name */
function nameParts(name) {
  const letters = [...name];
  if (letters.length <= SHORT) return [name];
  const [begin, end] = [letters.slice(0, -END), letters.slice(-END)];
  return [h("span", { class: "name-begin" }, begin.join("")), h("span", null, end.join(""))];
}

/**
 * Move the focus between tiles with the arrow keys. Pass this as `onkeydown`.
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
 * Make one tile of an element reachable with Tab: the last focused one, or the first.
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
 * Find the nearest tile in the line above or below.
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
    // A nearer line always wins over a nearer position in a line.
    const far = down * 1e4 + Math.abs(there.left - here.left);
    if (far < least) [found, least] = [tile, far];
  }
  return found;
}
