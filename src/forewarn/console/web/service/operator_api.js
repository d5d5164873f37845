/** Calls of the operator API, typed by its OpenAPI document. */

/** @typedef {import("../generated/api").paths} paths */
/** @typedef {import("../types").Caller} Caller */
/**
 * @template {"get" | "post"} M
 * @typedef {import("../types").PathWith<M>} PathWith
 */

// A connection may break after the server acted. A retry with the same key does not act twice.
const TRIES = 4;
const PAUSE = 500;
const LONGEST_PATIENCE = 10;
const PAGE = 1000;

/** The server refused a call. The message comes from the server. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   * @param {number} retryAfter  seconds
   */
  constructor(status, code, message, retryAfter) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }

  /** Whether a retry may succeed. */
  get isTemporary() {
    return this.status === 503 || (this.status === 429 && this.retryAfter <= LONGEST_PATIENCE);
  }
}

/** No server responds. */
export class Unreachable extends Error {}

/** Calls the API. Fires `signed-out` when the server no longer accepts the session. */
export class OperatorApi extends EventTarget {
  /** The token that protects changes against forgery; null if the server needs no sign-in. @type {string | null} */
  csrf = null;

  /**
   * @template {PathWith<"get">} P
   * @param {P} path
   * @param {import("../types").Arguments<P, "get">} [given]
   * @returns {Promise<import("../types").Answer<P, "get">>}
   */
  get(path, given) {
    return this.#call("GET", path, given);
  }

  /**
   * Read a thing with the ETag of its declaration, for a conditional change.
   *
   * @template {PathWith<"get">} P
   * @param {P} path
   * @param {import("../types").Arguments<P, "get">} given
   * @returns {Promise<{ answer: import("../types").Answer<P, "get">, tag: string }>}
   */
  async getTagged(path, given) {
    const { answer, response } = await this.#exchange("GET", path, given, {});
    return { answer, tag: response.headers.get("ETag") ?? "" };
  }

  /**
   * Send a POST that changes nothing, such as a dry run. It has no key, so the server stores no answer.
   *
   * @template {PathWith<"post">} P
   * @param {P} path
   * @param {import("../types").Arguments<P, "post">} given
   * @returns {Promise<import("../types").Answer<P, "post">>}
   */
  askByPost(path, given) {
    return this.#call("POST", path, given);
  }

  /**
   * Change something. A retry with the same key does not act twice.
   *
   * @param {{ method: string, path: string, given: any, headers?: { [name: string]: string } }} request
   * @param {string} key
   * @returns {Promise<any>}
   */
  async send({ method, path, given, headers = {} }, key) {
    const keyed = method === "POST" ? { ...headers, "Idempotency-Key": key } : headers;
    return (await this.#exchange(method, path, given, keyed)).answer;
  }

  /**
   * Read a whole list, page by page.
   *
   * @template {PathWith<"get">} P
   * @template {keyof import("../types").Answer<P, "get">} N
   * @param {P} path
   * @param {N} noun  the key of the list in the answer
   * @param {{ [name: string]: any }} [query]
   * @returns {Promise<import("../types").Answer<P, "get">[N]>}
   */
  async all(path, noun, query = {}) {
    /** @type {any[]} */
    const items = [];
    let after = null;
    do {
      /** @type {any} */
      const page = await this.#call("GET", path, { query: { limit: PAGE, ...query, after } });
      items.push(...page[noun]);
      after = page.next;
    } while (after);
    return /** @type {any} */ (items);
  }

  /**
   * Open a streaming answer.
   *
   * @param {string} address
   * @param {AbortSignal} signal
   * @returns {Promise<Response>}
   */
  async open(address, signal) {
    const response = await reached(fetch(address, { signal, cache: "no-store" }));
    if (!response.ok) throw await this.#refusal(response);
    return response;
  }

  /**
   * Sign in with a token. The browser keeps the session in a cookie that scripts cannot read.
   *
   * @param {string} token
   * @returns {Promise<Caller>}
   */
  async signIn(token) {
    const headers = { Authorization: `Bearer ${token}` };
    const response = await reached(fetch("/v1/session", { method: "POST", headers, cache: "no-store" }));
    if (!response.ok) throw await refusalOf(response);
    return this.#take(await response.json());
  }

  /**
   * Return the current caller. A refusal means that the user is not signed in; it fires no event.
   *
   * @returns {Promise<Caller>}
   */
  async session() {
    const response = await reached(fetch("/v1/session", { cache: "no-store" }));
    if (!response.ok) throw await refusalOf(response);
    return this.#take(await reached(response.json()));
  }

  /** Sign out, in all tabs. */
  async signOut() {
    await this.#call("DELETE", "/v1/session", {});
    this.csrf = null;
  }

  /** @param {any} answer */
  #take(answer) {
    this.csrf = answer.session.csrf;
    return /** @type {Caller} */ (answer.session.caller);
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {any} given
   * @returns {Promise<any>}
   */
  async #call(method, path, given) {
    return (await this.#exchange(method, path, given, {})).answer;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {any} given
   * @param {{ [name: string]: string }} more  headers
   * @returns {Promise<{ answer: any, response: Response }>}
   */
  async #exchange(method, path, given, more) {
    const address = addressOf(path, given?.path ?? {}, given?.query ?? {});
    /** @type {{ [name: string]: string }} */
    const headers = { ...more };
    if (method !== "GET" && this.csrf) headers["X-Forewarn-CSRF"] = this.csrf;
    const body = given?.body === undefined ? undefined : JSON.stringify(given.body);
    if (body !== undefined) headers["Content-Type"] = "application/json";
    // A repeated PUT or DELETE could be refused although the first one succeeded.
    const isRepeatable = method === "GET" || method === "POST";
    /** The refusal of an earlier attempt that may still take effect. @type {Refusal | null} */
    let uncertain = null;
    for (let left = isRepeatable ? TRIES : 1; ; left--) {
      try {
        const response = await reached(fetch(address, { method, headers, body, cache: "no-store" }));
        if (response.ok) {
          const answer = response.status === 204 ? null : await reached(response.json());
          return { answer, response };
        }
        throw await this.#refusal(response);
      } catch (error) {
        const again = error instanceof Unreachable || (error instanceof Refusal && error.isTemporary);
        if (error instanceof Refusal && error.code === "Uncertain") uncertain = error;
        if (again && left === 1) throw uncertain ?? error;
        if (!again) throw error;
        await pause(error instanceof Refusal ? Math.max(error.retryAfter * 1000, PAUSE) : PAUSE);
      }
    }
  }

  /** @param {Response} response */
  async #refusal(response) {
    const refusal = await refusalOf(response);
    if (refusal.status === 401) this.dispatchEvent(new Event("signed-out"));
    return refusal;
  }
}

/** @param {Response} response */
async function refusalOf(response) {
  const answer = await response.json().catch(() => null);
  const error = answer?.error ?? { code: "Unknown", message: `the server answered ${response.status}` };
  return new Refusal(
    response.status,
    error.code,
    error.message,
    Number(response.headers.get("Retry-After") ?? 1),
  );
}

/**
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T>}
 */
async function reached(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("the server does not respond");
  }
}

/**
 * @param {string} path
 * @param {{ [name: string]: string }} names
 * @param {{ [name: string]: any }} query
 */
function addressOf(path, names, query) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(names[name] ?? ""));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const each of value) search.append(name, String(each));
    else if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return filled + (text ? `?${text}` : "");
}

/** Generate a random key. `crypto.randomUUID` is missing without TLS, except on localhost. */
export function randomKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** @param {number} milliseconds */
export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
