/** A small fleet, and a fake operator API that serves it and records its calls. */

/** @param {string} name @param {{ [field: string]: any }} [more] */
export const machine = (name, more = {}) => ({
  name,
  project: "default",
  group: "web",
  host: "host-1",
  bound_for: null,
  state: "running",
  address: null,
  vm_id: `0000-${name}`,
  ...more,
});

/** @param {string} kind @param {readonly string[]} topics @param {{ [field: string]: any }} [more] */
export const record = (kind, topics, more = {}) => ({
  ...{ kind, topics, number: 1, at: "2026-01-05T12:00:00Z", project: null, group: null, host: null },
  ...{ machine: null, event: null, order: null, by: null, reason: null },
  ...more,
});

/** @param {string} id @param {readonly string[]} resources @param {{ [field: string]: any }} [more] */
export const event = (id, resources, more = {}) => ({
  ...{ id, resources, type: "Freeze", status: "Scheduled", not_before: "2026-01-05T12:15:00Z" },
  ...{ group: "web", project: "default", ended_at: null, order: "O" },
  ...more,
});

export class FakeApi {
  /** The recorded calls: paths with their names or filters. @type {string[]} */
  asked = [];
  /** @type {Error | null} */
  trouble = null;
  lists = {
    machines: [],
    groups: [],
    projects: [],
    events: [],
    orders: [],
    hosts: [],
    rollouts: [],
    holds: [],
    drivers: [],
  };

  /** @param {string} path @param {string} noun @param {any} [query] */
  async all(path, noun, query = {}) {
    const text = new URLSearchParams(query).toString();
    this.asked.push(text ? `${path}?${text}` : path);
    if (this.trouble) throw this.trouble;
    const wanted = this.lists[noun];
    if (noun !== "machines") return wanted;
    return wanted.filter(
      (each) =>
        (!query.name || query.name.some((name) => name.toLowerCase() === each.name.toLowerCase())) &&
        (!query.group || query.group === each.group) &&
        (!query.host || query.host === each.host),
    );
  }

  /** @param {string} path */
  async get(path) {
    this.asked.push(path);
    if (this.trouble) throw this.trouble;
    const summary = { machines: this.lists.machines.length };
    const clock = { now: "2026-01-05T12:00:00Z", kind: "system", speed: 1 };
    if (path === "/v1/overview") return { clock, summary, ...this.lists };
    if (path === "/v1/summary") return { summary };
    if (path === "/v1/holds") return { holds: this.lists.holds };
    throw new Error(`nobody answers ${path}`);
  }

  /** Return the calls since the last time, sorted. */
  since() {
    const asked = this.asked.sort();
    this.asked = [];
    return asked;
  }
}
