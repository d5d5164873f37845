/**
 * A small virtual DOM. Views describe their content, and only the differences change the document: focus, scroll
 * positions and the position of a screen reader stay.
 *
 * Text is only set as text, so names cannot inject markup.
 */

/**
 * @typedef {import("../types").Child} Child
 * @typedef {{ [name: string]: any }} Props  `onclick` listens, `.value` sets a property, other names are attributes
 * @typedef {object} Described
 * @property {string} tag
 * @property {boolean} svg
 * @property {Props} props
 * @property {(Described | string)[]} children
 * @property {string | number | undefined} key
 */

const SVG = "http://www.w3.org/2000/svg";

/** @type {WeakMap<Element, Drawn[]>} */
const drawn = new WeakMap();

/** @typedef {{ described: Described | string, node: Node }} Drawn */

/**
 * Describe an element. Its `key` identifies it among siblings when their order changes.
 *
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {Described}
 */
export function h(tag, props, ...children) {
  return describe(tag, props, children, false);
}

/**
 * Describe an SVG element.
 *
 * @param {string} tag
 * @param {Props | null} [props]
 * @param {...Child} children
 * @returns {Described}
 */
export function svg(tag, props, ...children) {
  return describe(tag, props, children, true);
}

/**
 * Make an element contain exactly the described content.
 *
 * @param {Element} parent
 * @param {Child} children
 */
export function render(parent, children) {
  const before = drawn.get(parent) ?? [];
  if (!drawn.has(parent)) parent.replaceChildren();
  drawn.set(parent, place(parent, before, flat([children])));
}

/**
 * @param {string} tag
 * @param {Props | null | undefined} props
 * @param {readonly Child[]} children
 * @param {boolean} isSvg
 * @returns {Described}
 */
function describe(tag, props, children, isSvg) {
  const { key, ...rest } = props ?? {};
  return { tag, svg: isSvg, props: rest, children: flat(children), key };
}

/**
 * @param {readonly Child[]} children
 * @returns {(Described | string)[]}
 */
function flat(children) {
  /** @type {(Described | string)[]} */
  const found = [];
  for (const child of children) {
    if (child === null || child === undefined || child === "" || typeof child === "boolean") continue;
    if (typeof child === "object" && !("tag" in child)) found.push(...flat(child));
    else found.push(typeof child === "number" ? String(child) : child);
  }
  return found;
}

/**
 * @param {Element} parent
 * @param {Drawn[]} before
 * @param {(Described | string)[]} wanted
 * @returns {Drawn[]}
 */
function place(parent, before, wanted) {
  const known = new Known(before);
  const after = wanted.map((described) => {
    const old = known.take(described);
    return { described, node: old ? update(old, described) : create(described) };
  });
  for (const gone of known.left()) parent.removeChild(gone.node);
  let next = parent.firstChild;
  for (const { node } of after) {
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  return after;
}

/** The previous children of a parent, for reuse. */
class Known {
  /** @param {Drawn[]} before */
  constructor(before) {
    /** @type {Map<string, Drawn>} */
    this.keyed = new Map();
    /** Children without a key, by kind, last first, so that `pop` returns the first. @type {Map<string, Drawn[]>} */
    this.plain = new Map();
    for (const each of before.toReversed()) {
      const kind = kindOf(each.described);
      const key = keyOf(each.described);
      // Duplicate keys are a mistake, but their elements must still be removed or reused.
      if (key !== undefined && !this.keyed.has(`${kind} ${key}`)) this.keyed.set(`${kind} ${key}`, each);
      else if (this.plain.has(kind)) this.plain.get(kind)?.push(each);
      else this.plain.set(kind, [each]);
    }
  }

  /**
   * @param {Described | string} described
   * @returns {Drawn | undefined}
   */
  take(described) {
    const kind = kindOf(described);
    const key = keyOf(described);
    if (key === undefined) return this.plain.get(kind)?.pop();
    const found = this.keyed.get(`${kind} ${key}`);
    this.keyed.delete(`${kind} ${key}`);
    return found;
  }

  /** @returns {Drawn[]} */
  left() {
    return [...this.keyed.values(), ...[...this.plain.values()].flat()];
  }
}

/** @param {Described | string} described */
const kindOf = (described) => (typeof described === "string" ? "" : described.tag);

/** @param {Described | string} described */
const keyOf = (described) => (typeof described === "string" ? undefined : described.key);

/**
 * @param {Described | string} described
 * @returns {Node}
 */
function create(described) {
  if (typeof described === "string") return document.createTextNode(described);
  const element = described.svg
    ? document.createElementNS(SVG, described.tag)
    : document.createElement(described.tag);
  for (const [name, value] of Object.entries(described.props)) set(element, name, value, undefined);
  if (described.children.length) drawn.set(element, place(element, [], described.children));
  return element;
}

/**
 * @param {Drawn} old
 * @param {Described | string} described
 * @returns {Node}
 */
function update(old, described) {
  const { node, described: before } = old;
  // The same description means no change, for example for one of a thousand tiles.
  if (before === described) return node;
  if (typeof described === "string" || typeof before === "string") {
    if (before !== described) node.nodeValue = /** @type {string} */ (described);
    return node;
  }
  const element = /** @type {Element} */ (node);
  for (const name of Object.keys(before.props)) {
    if (!(name in described.props)) set(element, name, undefined, before.props[name]);
  }
  for (const [name, value] of Object.entries(described.props)) {
    if (value === before.props[name] && (!name.startsWith(".") || isTypedIn(element, name))) continue;
    set(element, name, value, before.props[name]);
  }
  // Do not touch the content of an element that fills itself.
  if (described.children.length || before.children.length) {
    drawn.set(element, place(element, drawn.get(element) ?? [], described.children));
  }
  return element;
}

/**
 * Whether the user edits this property now. Unsent input must survive a redraw.
 *
 * @param {Element} element
 * @param {string} name
 */
const isTypedIn = (element, name) => name === ".value" && element === document.activeElement;

/**
 * @param {Element} element
 * @param {string} name
 * @param {any} value
 * @param {any} before
 */
function set(element, name, value, before) {
  if (name.startsWith("on")) listen(element, name.slice(2), value);
  else if (name.startsWith(".")) {
    const property = name.slice(1);
    // Setting an equal value would move the caret.
    if (/** @type {any} */ (element)[property] !== value) /** @type {any} */ (element)[property] = value;
  } else if (name === "style") setStyle(/** @type {HTMLElement} */ (element), value ?? {}, before ?? {});
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/**
 * Set style properties one by one: the Content-Security-Policy forbids `style` attributes.
 *
 * @param {HTMLElement} element
 * @param {{ [name: string]: string }} value
 * @param {{ [name: string]: string }} before
 */
function setStyle(element, value, before) {
  for (const name of Object.keys(before)) if (!(name in value)) element.style.removeProperty(name);
  for (const [name, each] of Object.entries(value)) element.style.setProperty(name, each);
}

/** @type {WeakMap<Element, { [type: string]: (event: any) => void }>} */
const listeners = new WeakMap();

/**
 * @param {Element} element
 * @param {string} type
 * @param {((event: any) => void) | null | undefined} listener
 */
function listen(element, type, listener) {
  let known = listeners.get(element);
  if (!known) listeners.set(element, (known = {}));
  if (!(type in known)) {
    const own = known;
    element.addEventListener(type, (event) => own[type]?.(event));
  }
  known[type] = listener ?? (() => {});
}
