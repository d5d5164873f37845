/** Menus and panels that open next to their buttons, in the browser's top layer. */

/**
 * Place a menu under its button, or above it if there is more room. The top layer does not position it.
 *
 * @param {HTMLElement} menu
 * @param {HTMLElement} button
 */
export function place(menu, button) {
  const at = button.getBoundingClientRect();
  const size = menu.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8));
  const below = innerHeight - at.bottom;
  const isAbove = below < size.height + 8 && at.top > below;
  const top = isAbove ? Math.max(8, at.top - size.height - 4) : at.bottom + 4;
  menu.style.setProperty("left", `${left}px`);
  menu.style.setProperty("top", `${top}px`);
  menu.style.setProperty("max-height", `${(isAbove ? at.top : innerHeight - top) - 12}px`);
}
