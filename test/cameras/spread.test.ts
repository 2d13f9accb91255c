import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextMove, type EnginePlace, type Placed, placeFor } from '../../src/cameras/spread.js'

const place = (msPerFrame?: number, more: Partial<EnginePlace> = {}): EnginePlace => ({
  isOpen: true,
  msPerFrame,
  instances: 1,
  ...more,
})
const on = (engine: number, framesPerSecond = 5): Placed => ({ engine, framesPerSecond })

/** Moves until none is worthwhile. @returns where each camera is then, and how many moves it took. */
function settled(places: readonly EnginePlace[], cameras: readonly Placed[]) {
  let all = [...cameras]
  for (let moves = 0; ; moves += 1) {
    const move = nextMove(places, all)
    if (move === undefined) return { cameras: all, moves }
    if (moves > 10_000) throw new Error('moves come to no end')
    all = all.map((camera) => (camera === move.camera ? { ...camera, engine: move.to } : { ...camera }))
  }
}

const load = (places: readonly EnginePlace[], cameras: readonly Placed[], engine: number) =>
  cameras
    .filter((camera) => camera.engine === engine)
    .reduce(
      (sum, { framesPerSecond }) =>
        sum +
        (framesPerSecond * (places[engine]?.msPerFrame ?? 1)) / 1_000 / (places[engine]?.instances ?? 1),
      0,
    )

describe('a camera that comes', () => {
  it('goes where fewest are, of engines that are alike', () => {
    expect(placeFor(1, [place(), place()], [])).toBe(0)
    expect(placeFor(1, [place(), place()], [on(0, 1)])).toBe(1)
    expect(placeFor(1, [place(), place()], [on(0, 1), on(1, 1), on(1, 1)])).toBe(0)
  })

  it.each([
    ['a quicker GPU', [place(20), place(5)], [on(0), on(1), on(1)], 1],
    ['one with more instances', [place(10), place(10, { instances: 4 })], [on(0), on(1), on(1)], 1],
    ['one whose cameras send less', [place(10), place(10)], [on(0, 25), on(1, 5), on(1, 5)], 1],
    ['one that was not measured, taken to be as the others', [place(10), place()], [on(0)], 1],
    ['an open one, though it is busy', [place(10, { isOpen: false }), place(10)], [on(1), on(1)], 1],
    ['any, where none is open', [place(10, { isOpen: false })], [], 0],
  ])('goes to %s', (_, places, cameras, expected) => {
    expect(placeFor(5, places, cameras)).toBe(expected)
  })
})

describe('cameras that are there', () => {
  it.each([
    ['an even spread', [on(0), on(1)]],
    ['one more than can be shared', [on(0), on(0), on(1)]],
    ['a single camera', [on(0)]],
    ['those that are switched off', [on(0, 0), on(0, 0), on(0, 5), on(0, 0)]],
    ['those whose load is too small to be a number', [on(0, Number.MIN_VALUE)]],
    ['those whose load cannot be divided', [on(0, Number.MIN_VALUE * 100)]],
  ])('stay: %s', (_, cameras) => {
    expect(nextMove([place(10), place(10)], cameras)).toBeUndefined()
  })

  it('are shared with a GPU that comes back', () => {
    const { cameras } = settled([place(10), place()], [on(0), on(0), on(0), on(0)])
    expect(cameras.map(({ engine }) => engine).sort()).toEqual([0, 0, 1, 1])
  })

  it('leave a GPU that other work makes slow', () => {
    const move = nextMove([place(60), place(10)], [on(0), on(0), on(1), on(1)])
    expect(move).toMatchObject({ to: 1 })
  })

  it('move only if they may, and only to open ones', () => {
    const cameras = [on(0), on(0), on(0), on(0)]
    expect(nextMove([place(10), place(10)], cameras, () => false)).toBeUndefined()
    expect(nextMove([place(10), place(10, { isOpen: false })], cameras)).toBeUndefined()
  })

  it('come to rest, with the busiest engine no busier than before, whatever there is', () => {
    const places = fc.array(
      fc.record({
        isOpen: fc.boolean(),
        msPerFrame: fc.option(fc.double({ min: 0.1, max: 500, noNaN: true }), { nil: undefined }),
        instances: fc.integer({ min: 1, max: 8 }),
      }),
      { minLength: 1, maxLength: 6 },
    )
    const speeds = fc.array(fc.double({ min: 0, max: 60, noNaN: true }), { maxLength: 24 })
    fc.assert(
      fc.property(places, speeds, fc.infiniteStream(fc.nat()), (all, demands, picks) => {
        const measured = all.map((each) => ({ ...each, msPerFrame: each.msPerFrame ?? 10 }))
        const cameras = demands.map((fps) => on((picks.next().value ?? 0) % measured.length, fps))
        const { cameras: after, moves } = settled(measured, cameras)
        const busiest = (of: readonly Placed[]) =>
          Math.max(...measured.map((_, engine) => load(measured, of, engine)))
        expect(after).toHaveLength(cameras.length)
        expect(busiest(after)).toBeLessThanOrEqual(busiest(cameras) * (1 + 1e-9))
        if (moves > 0) expect(nextMove(measured, after)).toBeUndefined()
        // Nothing was moved to an engine that takes none.
        const closed = (of: readonly Placed[]) => of.filter(({ engine }) => !measured[engine]!.isOpen).length
        expect(closed(after)).toBeLessThanOrEqual(closed(cameras))
      }),
    )
  })

  it('placed one by one are as even as can be on engines that are alike', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 0, max: 40 }), (engines, count) => {
        const places = Array.from({ length: engines }, () => place())
        const cameras: Placed[] = []
        while (cameras.length < count) cameras.push(on(placeFor(1, places, cameras), 1))
        const counts = places.map((_, engine) => cameras.filter((camera) => camera.engine === engine).length)
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
      }),
    )
  })
})
