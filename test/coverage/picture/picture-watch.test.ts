import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { planeSize, type PicturePlane } from '../../../src/coverage/picture/picture-plane.js'
import { newSceneAfterMs, PictureWatch } from '../../../src/coverage/picture/picture-watch.js'
import { causesOf, expectedOf, rawFrames, scoreOf, worsened } from '../../support/coverage-clips.js'
import { coverageFaults } from '../../support/coverage-faults.js'

const clip = join(import.meta.dirname, '../../../pipelines/demo/clips/gate.mp4')

describe('PictureWatch, on a clip that ffmpeg made worse', () => {
  let frames: Buffer
  beforeAll(() => {
    frames = rawFrames(clip)
  }, 120_000)

  it.each(Object.entries(coverageFaults))(
    'R132: %s is told by its cause, and nothing is told before and after',
    async (_, fault) => {
      const { causes } = await causesOf(worsened(frames, fault))
      const { right, sound, mistakes } = scoreOf(causes, expectedOf(fault))
      expect(mistakes).toEqual({})
      expect(right + sound).toBeGreaterThan(50)
    },
    120_000,
  )
})

/** A scene of its own for each seed. */
function scene(seed: number, light = 1): PicturePlane {
  const cells = planeSize.across * planeSize.down
  const luma = new Float32Array(cells)
  const detail = new Float32Array(cells)
  let state = seed
  for (let cell = 0; cell < cells; cell += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    luma[cell] = (60 + (state >>> 24) / 2) * light
    detail[cell] = ((state >>> 20) % 16) * light
  }
  return { luma, detail }
}

/** Without anything sharp in it. */
function plane(luma: (cell: number) => number): PicturePlane {
  const cells = planeSize.across * planeSize.down
  return {
    luma: Float32Array.from({ length: cells }, (_, cell) => luma(cell)),
    detail: new Float32Array(cells),
  }
}

/** The watch after the planes, one a second. */
function watched(...planes: readonly PicturePlane[]): PictureWatch {
  const watch = new PictureWatch()
  planes.forEach((plane, second) => watch.look(plane, second * 1_000))
  return watch
}

const times = (count: number, plane: PicturePlane) => Array.from({ length: count }, () => plane)

describe('PictureWatch', () => {
  it('R133: says since when the camera is moved, not only that it is, and not at once', () => {
    const moved = [...times(20, scene(1)), ...times(3, scene(2))]
    expect(watched(...moved).verdict).toEqual({ trouble: null, sinceMs: 0, doubtMs: 20_000 })
    expect(watched(...moved, ...times(4, scene(2))).verdict).toEqual({
      trouble: 'moved',
      sinceMs: 20_000,
      doubtMs: null,
    })
  })

  it('R133: takes what a moved camera shows for its scene after a minute', () => {
    const watch = watched(...times(20, scene(1)), ...times(newSceneAfterMs / 1_000 + 2, scene(2)))
    expect(watch.verdict).toEqual({ trouble: null, sinceMs: 80_000, doubtMs: null })
    for (let second = 90; second < 100; second += 1) watch.look(scene(1), second * 1_000)
    expect(watch.verdict.trouble).toBe('moved')
  })

  it('R133: is right again as soon as the camera is put back', () => {
    const watch = watched(...times(20, scene(1)), ...times(10, scene(2)), ...times(3, scene(1)))
    expect(watch.verdict).toEqual({ trouble: null, sinceMs: 30_000, doubtMs: null })
  })

  it('R133: a camera that is swung all the time has no scene that it could have left', () => {
    const swung = Array.from({ length: 120 }, (_, second) => scene(100 + second))
    const watch = new PictureWatch()
    const told = swung.map((plane, second) => {
      watch.look(plane, second * 1_000)
      return watch.verdict.trouble
    })
    expect(told.filter((trouble) => trouble !== null)).toEqual([])
    const after = watched(...times(20, scene(1)), ...swung.slice(0, 40))
    expect(after.verdict).toEqual({ trouble: null, sinceMs: 0, doubtMs: null })
  })

  it('R133: half of the light is no fault, and next to none is', () => {
    expect(watched(...times(20, scene(1)), ...times(10, scene(1, 0.5))).verdict.trouble).toBe(null)
    expect(watched(...times(20, scene(1)), ...times(10, scene(1, 0.08))).verdict.trouble).toBe('dark')
  })

  it('R133: a camera that begins in the dark is dark, and one that begins with nothing to see is covered', () => {
    expect(watched(...times(5, scene(1, 0.05))).verdict.trouble).toBe('dark')
    const grey = { luma: new Float32Array(2_304).fill(90), detail: new Float32Array(2_304) }
    expect(watched(...times(5, grey)).verdict.trouble).toBe('covered')
  })

  it('R143: a lit scene that turns black is dark, and a cloth that is seen in what light is left covers it', () => {
    const black = plane(() => 0)
    expect(watched(...times(20, scene(1)), ...times(10, black)).verdict.trouble).toBe('dark')
    // The cap of a lens: nothing but the noise of the sensor.
    const cap = plane((cell) => 1 + (cell % 3) / 2)
    expect(watched(...times(20, scene(1)), ...times(10, cap)).verdict.trouble).toBe('dark')
    const cloth = plane((cell) => 8 + 8 * Math.sin((cell % planeSize.across) / 9) ** 2)
    expect(watched(...times(20, scene(1)), ...times(10, cloth)).verdict.trouble).toBe('covered')
  })

  it('R143: what shines through paper, or is lit unevenly, is no scene', () => {
    const through = (light: (cell: number) => number) => {
      const { luma } = scene(1)
      return plane((cell) => light(cell) + luma[cell]! * 0.03)
    }
    const fallsOff = (cell: number) => 200 - Math.abs((cell % planeSize.across) - 32) * 3
    for (const light of [() => 180, fallsOff])
      expect(watched(...times(20, scene(1)), ...times(10, through(light))).verdict.trouble).toBe('covered')
  })

  it('R144: a camera that is swung all the time is told to be covered or dark, and is fine as soon as that ends', () => {
    const swung = (from: number, count: number) =>
      Array.from({ length: count }, (_, second) => scene(from + second))
    for (const [cover, trouble] of [
      [plane(() => 90), 'covered'],
      [plane(() => 2), 'dark'],
    ] as const) {
      const watch = watched(...swung(100, 40), ...times(20, cover))
      expect(watch.verdict).toEqual({ trouble, sinceMs: 40_000, doubtMs: null })
      const told = swung(200, 60).map((one, second) => {
        watch.look(one, (60 + second) * 1_000)
        return watch.verdict.trouble
      })
      expect(told.slice(2).filter((one) => one !== null)).toEqual([])
    }
  })

  it('forgets what was in doubt when no pictures came for a while', () => {
    const watch = watched(...times(20, scene(1)), scene(2))
    watch.look(scene(1), 60_000)
    expect(watch.verdict.doubtMs).toBe(null)
  })
})
