import { type Scenario } from '../scenario/schema.js'
import { framesPerSecond, pictureHeightPx, pictureWidthPx } from '../world/clock.js'
import { SimWorld, threeCamera } from '../world/world.js'
import { viewProjection } from './clip-space.js'
import { type Truth, type TruthFrame, type TruthHead } from './format.js'
import { Observer, groundPx } from './observer.js'
import { timelineOf } from './timeline.js'

/** All but the frames; cheap, since nothing is projected. */
export function truthHead(world: SimWorld, frameStride = 1): TruthHead {
  const { scenario } = world
  const matrix = viewProjection(
    threeCamera({ ...(scenario.camera ?? world.site.camera), rollRad: 0, movedShare: 0 }),
  )
  return {
    format: 'gantry-sim-truth/1',
    scenario: scenario.name,
    site: scenario.site,
    lighting: scenario.lighting,
    seed: scenario.seed,
    fps: framesPerSecond,
    widthPx: pictureWidthPx,
    heightPx: pictureHeightPx,
    frameCount: world.frameCount,
    frameStride,
    zones: world.zones.map(({ id, polygonM }) => ({
      id,
      polygonM,
      polygonPx: polygonM.map(([x, z]) => groundPx(matrix, x, z)),
    })),
    events: timelineOf(world),
  }
}

export interface TruthOptions {
  readonly frameStride?: number
  readonly onFrame?: (this: void, done: number, total: number) => void
}

/** The whole truth of a scenario. Same scenario and seed, same bytes. */
export function truthOf(scenario: Scenario, { frameStride = 1, onFrame }: TruthOptions = {}): Truth {
  const world = new SimWorld(scenario)
  const observer = new Observer(world)
  const frames: TruthFrame[] = []
  for (let frame = 0; frame < world.frameCount; frame += frameStride) {
    frames.push(observer.observe(frame))
    onFrame?.(frame + 1, world.frameCount)
  }
  return { ...truthHead(world, frameStride), frames }
}

/** One line for each frame, so that a diff and an eye can follow. */
export function truthJson(truth: Truth): string {
  const { frames, ...head } = truth
  const lines = frames.map((frame) => JSON.stringify(frame)).join(',\n')
  return `${JSON.stringify(head, undefined, 1).slice(0, -2)},\n "frames": [\n${lines}\n]}\n`
}
