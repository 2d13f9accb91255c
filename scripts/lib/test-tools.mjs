import { ensureHelm } from './helm.mjs'
import { ensureNewestFfmpeg } from './newest-ffmpeg.mjs'
import { oldestNode } from './node-version.mjs'
import { ensureTestNodes } from './other-node.mjs'
import { ensurePythonClients } from './python-clients.mjs'
import { ensureTools, testTools } from './system-tools.mjs'
import { ensureTritonClients } from './triton-clients.mjs'

/** Versions of Node that CI runs the smoke tests on, besides everything on the best one. */
export const smokeVersions = [oldestNode, '26']

/** A version that Gantry does not run on; tests see what becomes of it. */
export const outdatedNode = '20'

/** Installs what the tests talk to; other versions of Node in CI alone. Returns a line for each thing that is missing. */
export function ensureTestTools(say) {
  const missing = [
    ...ensureTools(testTools, say),
    ...ensureTritonClients(say),
    ...ensurePythonClients(say),
    ...ensureNewestFfmpeg(say),
    ...ensureHelm(say),
  ]
  return process.env.CI ? [...missing, ...ensureTestNodes([...smokeVersions, outdatedNode], say)] : missing
}
