import "./browser.js";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const { address, router } = await import("../../src/forewarn/console/web/page/router.js");

const FLEET = { path: "/fleet", tag: "fw-fleet", title: "Fleet" };
const MACHINE = { path: "/machines/{name}", tag: "fw-machine", title: "Machine" };

/** @param {string} path */
const visit = (path) => history.pushState(null, "", path);

beforeEach(() => {
  router.start([FLEET, MACHINE]);
  visit("/console/fleet");
});

test("an address matches its route and names", () => {
  visit("/console/machines/web-0?project=blue");
  assert.deepEqual(router.place, { route: MACHINE, names: { name: "web-0" } });
  assert.equal(router.query.get("project"), "blue");
});

test("a trailing slash is ignored", () => {
  visit("/console/fleet/");
  assert.equal(router.place?.route, FLEET);
});

for (const path of [
  "/console/nothing",
  "/console/machines",
  "/console/machines/a/b",
  "/console/machines/%E0%A4%A",
])
  test(`${path} matches no route`, () => {
    visit(path);
    assert.equal(router.place, null);
  });

test("a written address matches the same name, with any characters", () => {
  for (const name of ["web-0", "ü/ß", "50% off?", "#1"]) {
    visit(address(MACHINE.path, { name }));
    assert.deepEqual(router.place?.names, { name });
  }
});

test("empty values are omitted from an address", () =>
  assert.equal(address("/fleet", {}, { group: "web", project: null, text: "" }), "/console/fleet?group=web"));

test("a change of the query keeps other values and fires once", () => {
  visit("/console/fleet?group=web&text=a");
  let announced = 0;
  router.addEventListener("query", () => announced++);
  router.setQuery({ text: null, state: "frozen" });
  router.setQuery({ state: "frozen" });
  assert.equal(location.search, "?group=web&state=frozen");
  assert.equal(announced, 1);
});

test("go() opens the route of an address", () => {
  let moved = 0;
  router.addEventListener("moved", () => moved++);
  router.go(address(MACHINE.path, { name: "web-1" }));
  assert.deepEqual([router.place?.names.name, moved], ["web-1", 1]);
});
