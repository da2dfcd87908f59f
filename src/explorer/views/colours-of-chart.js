// The colours of the page for the canvas of a chart.
import { darkSetting } from '../ui.js';

/**
 * Colours of the page for the canvas.
 * @param isDark the theme, by default that of the screen
 */
export function themeOf(element, isDark = darkSetting.matches) {
  element.classList.toggle('light-colours', !isDark);
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(name).trim();
  const theme = {
    ink: read('--ink'),
    quiet: read('--quiet'),
    line: read('--line'),
    panel: read('--panel'),
    band: Number(read('--band')),
  };
  element.classList.remove('light-colours');
  return theme;
}
