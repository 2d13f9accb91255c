/** A label as people write it: `no_vest` and `no-vest` are "no vest". For display only; programs keep the label. */
export function labelName(label: string): string {
  const name = label.replaceAll(/[_-]+/g, ' ').replaceAll(/\s+/g, ' ').trim()
  return name === '' ? label : name
}
