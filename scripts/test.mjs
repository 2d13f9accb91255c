#!/usr/bin/env node
// `npm test [-- vitest arguments]`: set-up, every test, and as last line the counts.
import './lib/right-node.mjs'
import { say, setUp } from './lib/set-up.mjs'
import { runSmoke } from './lib/smoke.mjs'
import { countsLine, sum } from './lib/test-counts.mjs'
import { ensureTestTools, smokeVersions } from './lib/test-tools.mjs'
import { runTrainingTests } from './lib/training-tests.mjs'
import { runVitest } from './lib/vitest-run.mjs'

/** Tests on models and data that are not ours to publish: where those are absent, these are skipped, in CI as well. */
const onOutsideMaterial = [
  'test/detector/models-in-the-wild.test.ts:',
  'test/tools/split/split-model.test.ts: cuts a real YOLOX-Nano',
  'training tests.test_export:',
]
/** Within a container namespaces can be made only where it was given that right. */
const onNamespaces = ['test/ops/container.test.ts:']
/** A processor with AVX2 is imitated by one of its own kind. */
const onX64 = process.arch === 'x64' ? [] : ['test/backends/onnxruntime/int8-arithmetic.test.ts:']
const inCi = Boolean(process.env.CI)
const args = process.argv.slice(2)

setUp()
const missing = ensureTestTools(say)

const results = [runVitest(args)]
// A selection of tests is a selection of vitest's tests.
if (args.length === 0) {
  // They reckon while the smoke runs mostly wait.
  const training = runTrainingTests(inCi)
  if (inCi) results.push(runSmoke(smokeVersions))
  results.push(await training)
}

const counts = sum(results)
for (const line of missing) console.log(inCi ? line : `${line}; tests that need it were skipped`)
for (const name of counts.skippedNames) console.log(`skipped: ${name}`)
const unexcused = counts.skippedNames.filter(
  (name) => ![...onOutsideMaterial, ...onNamespaces, ...onX64].some((start) => name.startsWith(start)),
)
const complete = missing.length === 0 && unexcused.length === 0
if (inCi && !complete)
  console.log(
    'in CI nothing else may be missing or skipped than tests on models and data that may not be published',
  )
console.log(countsLine(counts))
process.exit(counts.failed > 0 || (inCi && !complete) ? 1 : 0)
