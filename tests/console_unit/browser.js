/**
 * A fake of the browser APIs that the console uses, for tests without a browser. Import it first.
 *
 * The time zone is Berlin: one hour ahead of UTC in winter, two in summer.
 */

import { setMaxListeners } from "node:events";

process.env.TZ = "Europe/Berlin";

class FakeNode {
  parent = null;
  childNodes = [];
  nodeValue = "";

  constructor(tag) {
    this.tag = tag;
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get nextSibling() {
    const siblings = this.parent?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }

  get textContent() {
    return this.tag === "#text" ? this.nodeValue : this.childNodes.map((each) => each.textContent).join("");
  }

  insertBefore(node, next) {
    node.parent?.removeChild(node);
    const at = next ? this.childNodes.indexOf(next) : this.childNodes.length;
    this.childNodes.splice(at, 0, node);
    node.parent = this;
  }

  removeChild(node) {
    this.childNodes.splice(this.childNodes.indexOf(node), 1);
    node.parent = null;
  }

  replaceChildren() {
    for (const node of [...this.childNodes]) this.removeChild(node);
  }
}

export class FakeElement extends FakeNode {
  attributes = new Map();
  #listeners = new Map();
  style = {
    set: new Map(),
    setProperty: (name, value) => this.style.set.set(name, value),
    removeProperty: (name) => this.style.set.delete(name),
  };

  setAttribute(name, value) {
    this.attributes.set(name, value);
  }

  removeAttribute(name) {
    this.attributes.delete(name);
  }

  addEventListener(type, listener) {
    this.#listeners.set(type, [...(this.#listeners.get(type) ?? []), listener]);
  }

  dispatch(type) {
    for (const listener of this.#listeners.get(type) ?? []) listener({ type });
  }
}

function text(value) {
  const node = new FakeNode("#text");
  node.nodeValue = value;
  return node;
}

class FakeDocument extends EventTarget {
  hidden = false;
  activeElement = null;
  documentElement = { dataset: {} };
  createElement = (tag) => new FakeElement(tag);
  createElementNS = (space, tag) => Object.assign(new FakeElement(tag), { space });
  createTextNode = text;
}

const kept = new Map();
const elements = new Map();
const followers = new EventTarget();

Object.assign(globalThis, {
  HTMLElement: class {},
  HTMLAnchorElement: class {},
  addEventListener: followers.addEventListener.bind(followers),
  dispatchEvent: followers.dispatchEvent.bind(followers),
  customElements: { get: (tag) => elements.get(tag), define: (tag, element) => elements.set(tag, element) },
  document: new FakeDocument(),
  location: { origin: "http://127.0.0.1:8170", pathname: "/console", search: "" },
  requestAnimationFrame: (then) => setTimeout(then, 16),
  cancelAnimationFrame: clearTimeout,
});
Object.defineProperty(globalThis, "localStorage", {
  value: { getItem: (name) => kept.get(name) ?? null, setItem: (name, value) => kept.set(name, value) },
});
globalThis.history = { pushState: visit, replaceState: visit };

function visit(_state, _title, address) {
  const { pathname, search } = new URL(address, location.origin);
  Object.assign(location, { pathname, search });
}

// Each PacedReading listens as long as its view.
setMaxListeners(0, document);

/**
 * Fake real time. `pass` advances it by milliseconds and runs everything that becomes due.
 *
 * @param {import("node:test").TestContext} t
 */
export function handTurned(t) {
  let now = 1_000_000;
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  t.mock.method(performance, "now", () => now);
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  return {
    settle,
    /** Advance time during a read. @param {number} milliseconds */
    take(milliseconds) {
      now += milliseconds;
    },
    /** @param {number} milliseconds */
    async pass(milliseconds) {
      for (let left = milliseconds; left > 0; left -= 50) {
        const step = Math.min(50, left);
        now += step;
        t.mock.timers.tick(step);
        await settle();
      }
    },
  };
}
