// Copies texts, on pages of plain http too, where browsers hide `navigator.clipboard`.

/** Copies the text of a hidden field: browsers allow only this on plain http. */
function copySelected(text) {
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'hidden';
  field.readOnly = true;
  document.body.append(field);
  const before = document.activeElement;
  field.select();
  const isCopied = document.execCommand('copy');
  field.remove();
  before?.focus();
  return isCopied;
}

/**
 * Copies a text.
 * @returns a sentence about the success
 */
export async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return 'Copied';
  } catch {
    return copySelected(text)
      ? 'Copied'
      : 'This browser does not let the page copy; select the text instead';
  }
}
