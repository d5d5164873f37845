/** Performance entries for browser tools and tests. Only the last entry of each name is kept. */

/**
 * @param {"first-view" | "update"} name
 * @param {number} start  from `performance.now()`; 0 is the start of the navigation
 */
function measure(name, start) {
  performance.clearMeasures(`forewarn:${name}`);
  performance.measure(`forewarn:${name}`, { start, end: performance.now() });
}

let hasFirstView = false;

/** Record that the first view is drawn. It is interactive after this frame. */
export function firstViewDrawn() {
  if (hasFirstView) return;
  hasFirstView = true;
  afterFrame(() => measure("first-view", 0));
}

let isUpdating = false;

/** Record that a change is drawn in the next frame, and measure its cost. */
export function updateComes() {
  if (isUpdating) return;
  isUpdating = true;
  requestAnimationFrame(() => {
    const start = performance.now();
    afterTask(() => {
      isUpdating = false;
      measure("update", start);
    });
  });
}

/** @param {() => void} then */
const afterFrame = (then) => requestAnimationFrame(() => afterTask(then));

/**
 * Run a task after the frame's style, layout and paint, without the delay of a timer.
 *
 * @param {() => void} then
 */
function afterTask(then) {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    channel.port1.close();
    then();
  };
  channel.port2.postMessage(null);
}
