import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { emptyModelConfig } from '../../src/repository/model-config.js'
import { BatchingFindings } from '../../src/runtime/batching-findings.js'
import type { BatchingProbe } from '../../src/runtime/batching-probe.js'
import { addModel, redDetector } from '../support/onnx-models.js'
import { silentLog } from '../support/silent-log.js'
import { tempDir } from '../support/temp-dir.js'

const probe: BatchingProbe = { pays: false, figures: { alone: 1, batched: 2, batchSize: 4 } }

function rig(file = join(tempDir(), 'batching.json')) {
  const repository = tempDir()
  addModel(repository, 'm', { onnx: redDetector('uint8-nhwc') })
  let measured = 0
  const of = (change = {}, result = probe) =>
    new BatchingFindings(file, silentLog()).of(
      join(repository, 'm/1'),
      { ...emptyModelConfig, ...change },
      () => {
        measured += 1
        return Promise.resolve(result)
      },
    )
  return { of, repository, measured: () => measured }
}

it('tells a process what the one before found, while files and configuration are the same', async () => {
  const { of, repository, measured } = rig()
  expect([await of(), await of()]).toEqual([probe, probe])
  expect(measured()).toBe(1)
  await of({ max_batch_size: 8 })
  expect(measured()).toBe(2)
  writeFileSync(join(repository, 'm/1/model.onnx'), 'another')
  await of({ max_batch_size: 8 })
  expect(measured()).toBe(3)
})

it('keeps nothing that was not measured, and measures where nothing can be kept', async () => {
  const { of, measured } = rig()
  await of({}, { pays: true })
  await of()
  expect(measured()).toBe(2)
  const unwritable = rig('/dev/null/batching.json')
  expect([await unwritable.of(), await unwritable.of()]).toEqual([probe, probe])
  expect(unwritable.measured()).toBe(2)
})
