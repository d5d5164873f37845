/** Files that the page makes itself. */

// Browsers read what is behind the address a moment after the click.
const KEPT = 60_000;

/**
 * Let the browser keep something as a file.
 *
 * @param {Blob} content
 * @param {string} name
 */
export function download(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT);
}
