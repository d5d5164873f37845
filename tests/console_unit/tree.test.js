import { FakeElement } from "./browser.js";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const { h, render, svg } = await import("../../src/forewarn/console/web/page/tree.js");

let parent = new FakeElement("main");
beforeEach(() => {
  parent = new FakeElement("main");
  document.activeElement = null;
});

/** @param {readonly (string | number)[]} keys */
const list = (keys) => keys.map((key) => h("li", { key }, key));
const texts = () => parent.childNodes.map((node) => node.textContent);

test("described elements are rendered, and empty values are not", () => {
  render(parent, [h("p", { class: "big" }, "one ", [2, [" three"]]), null, false, undefined, "", "end"]);
  assert.deepEqual(texts(), ["one 2 three", "end"]);
  assert.equal(parent.childNodes[0].attributes.get("class"), "big");
});

test("markup in a name is text", () => {
  render(parent, h("b", null, "<img onerror=alert(1)>"));
  assert.equal(parent.textContent, "<img onerror=alert(1)>");
  assert.deepEqual(
    parent.childNodes[0].childNodes.map((node) => node.tag),
    ["#text"],
  );
});

test("elements with keys keep their nodes when their order changes", () => {
  render(parent, list(["a", "b", "c"]));
  const [a, b, c] = parent.childNodes;
  render(parent, list(["c", "new", "a"]));
  assert.deepEqual(texts(), ["c", "new", "a"]);
  assert.equal(parent.childNodes[0], c);
  assert.equal(parent.childNodes[2], a);
  assert.equal(b.parent, null);
});

test("elements without keys are reused in order", () => {
  render(parent, [h("i", null, "1"), h("b", null, "2"), h("i", null, "3")]);
  const [first, , third] = parent.childNodes;
  render(parent, [h("i", null, "one"), h("i", null, "three")]);
  assert.deepEqual(parent.childNodes, [first, third]);
  assert.deepEqual(texts(), ["one", "three"]);
});

test("siblings with the same key are all removed", () => {
  render(parent, list(["a", "a", "a"]));
  render(parent, list(["a"]));
  assert.deepEqual(texts(), ["a"]);
});

test("any order can change to any other", () => {
  const orders = ["abcdef", "fedcba", "", "cxa", "acx", "bcdefa", "a"].map((letters) => [...letters]);
  for (const before of orders)
    for (const after of orders) {
      render(parent, list(before));
      render(parent, list(after));
      assert.deepEqual(texts(), after);
    }
});

test("attributes that are no longer described are removed", () => {
  render(parent, h("p", { id: "x", hidden: true, title: "t" }));
  const [node] = parent.childNodes;
  assert.equal(node.attributes.get("hidden"), "");
  render(parent, h("p", { hidden: false, title: "u" }));
  assert.deepEqual([...node.attributes], [["title", "u"]]);
});

test("styles are set and removed one by one", () => {
  render(parent, h("p", { style: { width: "1px", color: "red" } }));
  render(parent, h("p", { style: { width: "2px" } }));
  assert.deepEqual([...parent.childNodes[0].style.set], [["width", "2px"]]);
});

test("only the latest listener is called, and no removed one", () => {
  const called = [];
  for (const name of ["first", "second"]) render(parent, h("button", { onclick: () => called.push(name) }));
  const [button] = parent.childNodes;
  button.dispatch("click");
  render(parent, h("button"));
  button.dispatch("click");
  assert.deepEqual(called, ["second"]);
});

test("a field is reset to its described value, except while it has the focus", () => {
  const field = () => render(parent, h("input", { ".value": "saved" }));
  field();
  const [input] = parent.childNodes;
  input.value = "typed";
  document.activeElement = input;
  field();
  assert.equal(input.value, "typed");
  document.activeElement = null;
  field();
  assert.equal(input.value, "saved");
});

test("the content of an element that fills itself stays", () => {
  render(parent, h("fw-tile"));
  const [tile] = parent.childNodes;
  tile.insertBefore(new FakeElement("b"), null);
  render(parent, h("fw-tile", { class: "wide" }));
  assert.deepEqual(
    tile.childNodes.map((node) => node.tag),
    ["b"],
  );
});

test("an identical description is not compared", () => {
  const tile = h("p", null, "as it was");
  render(parent, tile);
  parent.childNodes[0].childNodes[0].nodeValue = "changed by hand";
  render(parent, [tile]);
  assert.equal(parent.textContent, "changed by hand");
});

test("SVG elements have the SVG namespace", () => {
  render(parent, svg("svg", null, svg("rect")));
  assert.equal(parent.childNodes[0].childNodes[0].space, "http://www.w3.org/2000/svg");
});
