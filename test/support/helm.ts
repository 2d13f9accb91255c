import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { helmProgram } from '../../scripts/lib/helm.mjs'

/** A helm; `undefined` where none is installed; in CI there always is one. */
export const helm = helmProgram()

export const chartFolder = join(import.meta.dirname, '../../deploy/helm/gantry')

/** A helm that was built by `go install` believes that it speaks to Kubernetes 1.20. */
const kubeVersion = ['--kube-version', '1.36.3']

/** Values of the chart by their paths, with which it can be installed. */
export const leastValues = { image: { repository: 'registry.example/gantry' }, token: { secret: 'gantry' } }

export type KubernetesObject = Readonly<{
  apiVersion: string
  kind: string
  metadata: Readonly<{ name: string; labels?: Readonly<Record<string, string>> }>
  spec?: unknown
  data?: Readonly<Record<string, string>>
}>

/** `helm` with values on its standard input. */
function runWithValues(args: readonly string[], values: object) {
  return spawnSync(helmProgram() ?? 'helm', [...args, ...kubeVersion, '-f', '-'], {
    input: JSON.stringify(values),
    encoding: 'utf8',
  })
}

/** What the linter says of the chart with these values; empty where it is content. */
export function lintedChart(values: object): string {
  const { status, stdout, stderr } = runWithValues(['lint', chartFolder, '--strict', '--quiet'], values)
  return status === 0 ? '' : stdout + stderr
}

/** Why the chart refuses these values; empty where it does not. */
export function refusalOf(values: object): string {
  const { status, stderr } = runWithValues(['template', 'plant', chartFolder], values)
  return status === 0 ? '' : stderr
}

/**
 * The objects that the chart makes as release `plant` in the namespace `factory`.
 *
 * @throws Error with what helm says
 */
export function renderedChart(values: object = {}): readonly KubernetesObject[] {
  const all = { ...leastValues, ...values }
  const { status, stdout, stderr } = runWithValues(
    ['template', 'plant', chartFolder, '--namespace', 'factory'],
    all,
  )
  if (status !== 0) throw new Error(stderr)
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null)
}
