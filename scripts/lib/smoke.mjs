import { testNode } from './other-node.mjs'
import { sum } from './test-counts.mjs'
import { runVitest } from './vitest-run.mjs'

/** The whole service, and what leans on parts of Node that change: socket hand-over, upgrades, flags of V8, kinds of typed arrays. */
const files = [
  'test/e2e/smoke.test.ts',
  'test/e2e/shared-port.test.ts',
  'test/api/upgrade-offers.test.ts',
  'test/lifecycle/v8-flags.test.ts',
  'test/backends/onnxruntime/ort-tensor.test.ts',
]

/** Runs the smoke tests on each version. One that nobody has brought is a failure. */
export function runSmoke(versions) {
  const results = versions.map((version) => {
    const node = testNode(version)
    console.log(node ? `\nsmoke run on Node ${version}` : `smoke run on Node ${version}: it is not there`)
    if (!node) return { passed: 0, failed: 1, skipped: 0, skippedNames: [] }
    const counts = runVitest(files, node)
    return { ...counts, skippedNames: counts.skippedNames.map((name) => `Node ${version}: ${name}`) }
  })
  return sum(results)
}
