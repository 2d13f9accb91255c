/**
 * Prints the path of a pipeline file that says what flags of `tritonserver` say.
 *
 * Flags without a counterpart are told on stderr and left out. Models of Triton's own test backends get a stand-in first.
 */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { putStandIns } from './stand-ins.mjs'
import { pipelineOf } from './triton-flags.mjs'

const { pipeline, unknown } = pipelineOf(process.argv.slice(2))
for (const flag of unknown) process.stderr.write(`no counterpart of ${flag}\n`)
for (const folder of pipeline.models.repository) putStandIns(folder)

const dir = mkdtempSync(join(process.env.TRITON_QA_TEMP ?? tmpdir(), 'server-'))
const file = join(dir, 'pipeline.json')
writeFileSync(file, JSON.stringify({ ...pipeline, store: { path: join(dir, 'store') } }, null, 2))
process.stdout.write(file)
