import { closest, distance } from 'fastest-levenshtein'

/** The known word that a misspelt one was probably meant to be; undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (known.length === 0) return undefined
  const lower = new Map(known.map((name) => [name.toLowerCase(), name]))
  const best = closest(word.toLowerCase(), [...lower.keys()])
  const near = distance(word.toLowerCase(), best) <= Math.max(1, Math.floor(best.length / 3))
  return near ? lower.get(best) : undefined
}

/** `did you mean "x"?`, or what there is to choose from. */
export function suggestion(word: string, known: readonly string[]): string | undefined {
  const near = nearest(word, known)
  if (near !== undefined) return `did you mean "${near}"?`
  return known.length === 0 ? undefined : `known here: ${known.join(', ')}`
}
