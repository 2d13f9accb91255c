/** Colours for what matters on a site: protection is green, its absence red, people blue, machines amber. */
const known: Readonly<Record<string, string>> = {
  helmet: '#34d17b',
  hardhat: '#34d17b',
  vest: '#9be15d',
  head: '#ff5a5f',
  'no-helmet': '#ff5a5f',
  'no-hardhat': '#ff5a5f',
  'no-vest': '#ff8a5c',
  person: '#4db8ff',
  worker: '#4db8ff',
  machinery: '#f5b731',
  vehicle: '#f5b731',
  forklift: '#f5b731',
  excavator: '#f5b731',
  truck: '#f5b731',
}

/** Labels nobody chose a colour for share these, none of which reads as safe or as danger. */
const others = ['#b69cff', '#5eead4', '#f29bd4', '#93c5fd', '#e5c07b', '#c4b5fd', '#67d5e5', '#d6a5ff']

/** The same colour for a label wherever it is shown, light enough for dark text. */
export function labelColor(label: string): string {
  const chosen = known[label.toLowerCase().replaceAll('_', '-')]
  if (chosen !== undefined) return chosen
  let hash = 0
  for (const character of label) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0
  return others[hash % others.length] ?? '#93c5fd'
}

/** Whether seeing this label is a reason to look. */
export function isDanger(label: string): boolean {
  return /^(head|no[-_ ])/i.test(label)
}

/** Order in which boxes are drawn, so that none lies over one that is a reason to look; captions take their places the other way round. */
export function dangerLast(a: Readonly<{ label: string }>, b: Readonly<{ label: string }>): number {
  return Number(isDanger(a.label)) - Number(isDanger(b.label))
}
