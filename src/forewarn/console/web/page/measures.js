/** How long the page takes, as entries that a browser's tools and tests read. Only the last of each is kept. */

/**
 * @param {"first-view" | "update"} name
 * @param {number} start  as `performance.now()` says it; 0: when the address was asked for
 */
function measure(name, start) {
  performance.clearMeasures(`forewarn:${name}`);
  performance.measure(`forewarn:${name}`, { start, end: performance.now() });
}

let hasFirstView = false;

/** Say that the first view is drawn, and takes clicks once this frame is on the screen. */
export function firstViewDrawn() {
  if (hasFirstView) return;
  hasFirstView = true;
  afterFrame(() => measure("first-view", 0));
}

let isUpdating = false;

/** Say that something has changed that is drawn with the next frame: from there on its cost is measured. */
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
 * A message is taken after the frame's style, layout and paint, without the rest of a timer.
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
