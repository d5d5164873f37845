/** Files that the console generates. */

// Browsers read the content some time after the click.
const KEPT = 60_000;

/**
 * Save content as a file.
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
