/**
 * `npm run test:kubernetes`: the chart and the other files of deploy/ for Kubernetes, against a real control plane of etcd, API server,
 * controllers and scheduler, whose machines are played by kwok: no container runs. Builds what it needs at its first run, which takes some
 * ten minutes, and keeps it. Needs Go, Prometheus (Debian: prometheus) and Python 3. Ends with 1 if something is amiss.
 */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import {
  hasNoRights,
  installs,
  keepsDisks,
  keepsNodesInDrains,
  keepsOthersOut,
  namespace,
  takesCards,
  upgradesAndGoesBack,
} from './chart-steps.js'
import { fitsKserve, makesWhatIsKnown } from './definition-steps.js'
import { ControlPlane } from './control-plane.js'
import { furnish } from './machines.js'
import { scalesByLoad } from './scaling-steps.js'
import { servesForAzure, servesForKserve } from './serving-steps.js'
import { runsPipelines } from './pipeline-steps.js'
import { say } from './say.js'

type Step = readonly [string, (plane: ControlPlane) => Promise<void>]

const steps: readonly Step[] = [
  ['installs: a node on each machine, with a disk of its own', installs],
  ['is let in where pods must be without rights', keepsOthersOut],
  ['has an account that may do nothing', hasNoRights],
  ['upgrades node by node, and goes back', upgradesAndGoesBack],
  ['gives one node at a time to who empties machines', keepsNodesInDrains],
  ['keeps the disk of a node that is scaled away', keepsDisks],
  ['takes cards, and waits for them', takesCards],
  ['makes objects that KEDA and the Prometheus Operator know', makesWhatIsKnown],
  ['has files that KServe takes', fitsKserve],
  ['serves a repository as KServe asks for it', servesForKserve],
  ['serves a repository as Azure ML asks for it', servesForAzure],
  ['runs as steps of Kubeflow Pipelines', runsPipelines],
  ['has as many nodes as their load asks for', scalesByLoad],
]

const folder = mkdtempSync(join(tmpdir(), 'gantry-kubernetes-'))
let plane: ControlPlane | undefined
try {
  const beganMs = performance.now()
  plane = await ControlPlane.start(folder)
  await furnish(plane, namespace)
  say(`the control plane is up after ${seconds(beganMs)}`)
  for (const [name, step] of steps) {
    const stepBeganMs = performance.now()
    await step(plane)
    say(`${name}: ${seconds(stepBeganMs)}`)
  }
  say(`${steps.length} steps went well, in ${seconds(beganMs)}`)
} catch (error) {
  process.stderr.write(`${inspect(error)}\nlogs: ${keptLogs()}\n`)
  process.exitCode = 1
} finally {
  await plane?.end()
  rmSync(folder, { recursive: true, force: true })
}

function seconds(sinceMs: number): string {
  return `${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`
}

function keptLogs(): string {
  const kept = mkdtempSync(join(tmpdir(), 'gantry-kubernetes-failed-'))
  cpSync(folder, kept, { recursive: true, filter: (path) => path === folder || path.endsWith('.log') })
  return kept
}
