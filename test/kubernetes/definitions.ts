import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { goModule } from '../../scripts/lib/go-programs.mjs'
import { until } from '../support/until.js'
import type { ControlPlane } from './control-plane.js'

/** Kinds of objects that others bring, as their Go modules have them. */
const modules: Readonly<Record<string, readonly string[]>> = {
  'github.com/kedacore/keda/v2@v2.20.2': ['config/crd/bases/keda.sh_scaledobjects.yaml'],
  'github.com/prometheus-operator/prometheus-operator@v0.85.0': [
    'example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml',
    'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
  ],
  'github.com/kserve/kserve@v0.19.0': [
    'config/crd/full/serving.kserve.io_servingruntimes.yaml',
    'config/crd/full/serving.kserve.io_inferenceservices.yaml',
  ],
}

/** Teaches the control plane the kinds of KEDA, the Prometheus Operator and KServe. */
export async function define(plane: ControlPlane): Promise<void> {
  const definitions = Object.entries(modules).flatMap(([module, files]) => {
    const folder = goModule(module)
    return files.map((file) => parse(readFileSync(join(folder, file), 'utf8')) as object)
  })
  await plane.apply(definitions)
  const names = definitions.map(
    (definition) => `crd/${(definition as { metadata: { name: string } }).metadata.name}`,
  )
  // It fails where a definition has no conditions yet.
  const wait = ['wait', '--for=condition=Established', '--timeout=30s', ...names]
  await until('the definitions', async () => (await plane.kubectl(wait)).code === 0, 60_000)
}
