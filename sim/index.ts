import { type Clip, type ClipOptions, renderedClip } from './render/clip.js'
import { loadScenario } from './scenario/load.js'
import { Observer } from './truth/observer.js'
import { truthOf } from './truth/truth.js'
import { SimWorld } from './world/world.js'
import { type Truth, type TruthFrame } from './truth/format.js'

export { scenarioNames, loadScenario } from './scenario/load.js'
export { scenarioSchema, type Scenario, type ScenarioInput } from './scenario/schema.js'
export {
  classNames,
  type ClassName,
  type Truth,
  type TruthEvent,
  type TruthFrame,
  type TruthObject,
  type TruthPerson,
} from './truth/format.js'
export { truthOf } from './truth/truth.js'
export { labelBox } from './dataset/labels.js'
export { framesPerSecond } from './world/clock.js'
export type { Clip } from './render/clip.js'

/**
 * A scenario of the library as a video with its truth; rendered at the first call, cached after it.
 *
 * @throws ScenarioError `GANTRY_CONFIG` if there is no such scenario
 * @throws RenderError `GANTRY_ENVIRONMENT` if Chromium or ffmpeg fail
 */
export async function clipOf(scenarioName: string, options?: ClipOptions): Promise<Clip> {
  return renderedClip(await loadScenario(scenarioName), options)
}

/** The truth alone, without a browser: what most tests of rules need. */
export async function truthOfScenario(scenarioName: string): Promise<Truth> {
  return truthOf(await loadScenario(scenarioName))
}

/** The truth of single frames, for one who needs few of them: a frame costs some 20 ms. */
export async function observed(scenarioName: string): Promise<(this: void, frame: number) => TruthFrame> {
  const observer = new Observer(new SimWorld(await loadScenario(scenarioName)))
  return (frame) => observer.observe(frame)
}
