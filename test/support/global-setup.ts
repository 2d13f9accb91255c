import './node-warnings.js'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { prepareKafka } from './kafka.js'

/**
 * Builds `dist/` before the first test, when sources have changed since the last build: worker threads, engine processes and the
 * dashboard run from there even when a test imports `src/`.
 *
 * One Kafka broker serves all tests of the run that ask for it.
 *
 * @returns the teardown.
 * @throws when the build fails, so that no test runs against an older one.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  buildBeforeTests()
  return prepareKafka()
}

function buildBeforeTests(): void {
  const script = fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))
  const { status } = spawnSync(process.execPath, [script], { stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the build failed; no test was run')
}
