/** What a search found: `largest` holds, and `largest + exactTo` does not, or is beyond the most. */
export type Largest = Readonly<{ largest: number; exactTo: number }>

/** How near the search comes, as a share of what it found. */
const near = 1 / 16

/**
 * The largest number that holds, where all below one that holds do: by doubling and halving, then between.
 *
 * @param from - the first that is tried.
 * @param isOver - asked before each try: no time is left.
 */
export async function largestThat(
  holds: (count: number) => Promise<boolean>,
  { from, most, isOver }: Readonly<{ from: number; most: number; isOver: () => boolean }>,
): Promise<Largest> {
  let [held, failed] = [0, most + 1]
  let next = Math.min(from, most)
  while (failed - held > Math.max(1, Math.floor(held * near)) && !isOver()) {
    if (await holds(next)) held = next
    else failed = next
    if (failed > most) next = Math.min(2 * held, most)
    else next = held === 0 ? Math.floor(next / 2) : Math.floor((held + failed) / 2)
  }
  return { largest: held, exactTo: failed - held }
}
