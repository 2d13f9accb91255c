import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { atOnce, inTurns, type Pieces } from '../../src/lifecycle/in-turns.js'

function* counting(pieces: number, each: () => void = () => undefined): Pieces<number> {
  for (let piece = 0; piece < pieces; piece++) {
    each()
    yield
  }
  return pieces
}

/** Holds the loop for so long. */
function spin(ms: number): void {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

it('does the same work at once and in turns', async () => {
  expect(atOnce(counting(7))).toBe(7)
  expect(await inTurns(counting(7))).toBe(7)
})

it('S12: lets the loop go round between pieces, however many works there are', async () => {
  const done: string[] = []
  let pieces = 0
  let mostInOneRound = 0
  const works = Array.from({ length: 5 }, () =>
    inTurns(
      counting(20, () => {
        pieces++
        spin(2)
      }),
    ).then(() => done.push('work')),
  )
  while (done.length < works.length) {
    const before = pieces
    await turn()
    mostInOneRound = Math.max(mostInOneRound, pieces - before)
  }
  await Promise.all(works)
  expect(pieces).toBe(100)
  // One turn is 5 ms: of pieces of 2 ms three, and as many again where a round of ours has two of theirs.
  expect(mostInOneRound).toBeLessThanOrEqual(6)
})

it('ends early when its signal says so', async () => {
  const client = new AbortController()
  let pieces = 0
  const work = inTurns(
    counting(1_000, () => {
      if (++pieces === 3) client.abort(new Error('gone'))
      spin(2)
    }),
    client.signal,
  )
  await expect(work).rejects.toThrow('gone')
  expect(pieces).toBeLessThan(10)
})

it('fails as the work does', async () => {
  const failing = (): Pieces<number> =>
    counting(3, () => {
      throw new Error('no')
    })
  expect(() => atOnce(failing())).toThrow('no')
  await expect(inTurns(failing())).rejects.toThrow('no')
})
