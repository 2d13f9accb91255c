import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { loadScenario, scenarioSchema, type Scenario } from '../../sim/index.js'
import { Encoder } from '../../sim/render/encoder.js'
import { drawPictures } from '../../sim/render/pictures.js'
import type { RenderBrowser } from '../../sim/render/browser.js'
import type { FaultKind } from '../../sim/scenario/schema.js'
import { truthHead } from '../../sim/truth/truth.js'
import { framesPerSecond } from '../../sim/world/clock.js'
import { SimWorld } from '../../sim/world/world.js'
import { playedSize } from './coverage-clips.js'
import type { ExpectedCauses } from './coverage-faults.js'

/** One frame of the simulator in so many is drawn: the checks look once a second. */
const stride = 5
const drawn = { fps: framesPerSecond / stride, bakePasses: 4, crf: 24, maxKbps: 600 } as const

/**
 * What people would say of a picture with this fault. Noise, and light that changes, leave a scene to be seen; of blocks one may say that what
 * was sharp is not any more. A picture that is next to white is taken for either.
 */
const expectedByFault: Readonly<Record<FaultKind, ExpectedCauses>> = {
  noise: [null],
  blocky: [null, 'blurred'],
  exposure: [null, 'covered'],
  blur: ['blurred'],
  covered: ['covered'],
  moved: ['moved'],
  frozen: ['frozen_picture'],
  black: ['dark'],
}

/** A scenario of the library, or one with a fault of its own from 14 s to 24 s: `night-yard+covered`. */
export async function coverageScenario(name: string): Promise<Scenario> {
  const [base = '', kind] = name.split('+')
  const scenario = await loadScenario(base)
  if (kind === undefined) return scenario
  const faults = [{ kind, fromS: 14, toS: 24, strength: 0.9 }]
  return scenarioSchema.parse({ ...scenario, name: `${base}-${kind}`, heldOut: false, loop: false, faults })
}

/** Draws it into a clip, or takes the one that was drawn of it before. @returns the path. */
export async function scenarioClip(
  browser: () => Promise<RenderBrowser>,
  scenario: Scenario,
  folder: string,
): Promise<string> {
  const digest = createHash('sha256')
    .update(JSON.stringify([scenario, drawn, playedSize]))
    .digest('hex')
  const path = join(folder, `${scenario.name}-${digest.slice(0, 12)}.mp4`)
  if (existsSync(path)) return path
  await mkdir(folder, { recursive: true })
  const draft = path.replace(/\.mp4$/, '.draft.mp4')
  const count = Math.round(scenario.durationS * drawn.fps)
  const frames = Array.from({ length: count }, (_, index) => index * stride)
  const encoder = Encoder.open({ path: draft, ...playedSize, ...drawn })
  const { bakePasses } = drawn
  await drawPictures(await browser(), scenario, { frames, bakePasses, ...playedSize }, (_, rgba) =>
    encoder.write(rgba),
  ).catch((error: unknown) => {
    encoder.abort()
    throw error
  })
  await encoder.finish()
  await rename(draft, path)
  return path
}

/** Whether the picture of a scenario is a frozen one at that second. */
export function isFrozenAt({ faults }: Scenario): (second: number) => boolean {
  const frozen = faults.filter(({ kind }) => kind === 'frozen')
  return (second) => frozen.some(({ fromS, toS }) => second >= fromS && second < toS)
}

/** What is to be told of each second by the timeline of the scenario; undefined where a border lies. */
export function expectedOfScenario(scenario: Scenario): (ExpectedCauses | undefined)[] {
  const { events } = truthHead(new SimWorld(scenario))
  const faults = events.flatMap((event) => (event.kind === 'camera_fault' ? [event] : []))
  return Array.from({ length: Math.floor(scenario.durationS) }, (_, second) => {
    if (faults.some(({ fromS, toS }) => [fromS, toS].some((border) => Math.abs(border - second) < 1)))
      return undefined
    const fault = faults.find(({ fromS, toS }) => second >= fromS && second < toS)
    return fault === undefined ? [null] : expectedByFault[fault.fault]
  })
}
