#!/usr/bin/env node
// `npm test [-- vitest arguments]`: set-up, every test, and as last line the counts.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './lib/root.mjs'
import { say, setUp } from './lib/set-up.mjs'
import { ensureTools, testTools } from './lib/system-tools.mjs'
import { countsLine, countVitest, sum } from './lib/test-counts.mjs'
import { runTrainingTests } from './lib/training-tests.mjs'
import { ensureTritonClients } from './lib/triton-clients.mjs'

/** Tests on models and data that are not ours to publish: where those are absent, these are skipped, in CI as well. */
const onOutsideMaterial = [
  'test/ensemble/models-in-the-wild.test.ts:',
  'test/serving/ensemble/split.test.ts: cuts a real YOLOX-Nano',
  'training tests.test_export:',
]
const inCi = Boolean(process.env.CI)
const args = process.argv.slice(2)

setUp()
const missing = [...ensureTools(testTools, say), ...ensureTritonClients(say)]

const folder = mkdtempSync(join(tmpdir(), 'gantry-test-counts-'))
const report = join(folder, 'vitest.json')
const vitest = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...args,
  ],
  { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
)
const results = [countVitest(report, vitest.status === 0)]
rmSync(folder, { recursive: true, force: true })
// A selection of tests is a selection of vitest's tests.
if (args.length === 0) results.push(runTrainingTests(inCi))

const counts = sum(results)
for (const line of missing) console.log(inCi ? line : `${line}; tests that need it were skipped`)
for (const name of counts.skippedNames) console.log(`skipped: ${name}`)
const unexcused = counts.skippedNames.filter(
  (name) => !onOutsideMaterial.some((start) => name.startsWith(start)),
)
const complete = missing.length === 0 && unexcused.length === 0
if (inCi && !complete)
  console.log(
    'in CI nothing else may be missing or skipped than tests on models and data that may not be published',
  )
console.log(countsLine(counts))
process.exit(counts.failed > 0 || (inCi && !complete) ? 1 : 0)
