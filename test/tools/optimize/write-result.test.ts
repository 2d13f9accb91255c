import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { findCameraModel } from '../../../src/ensemble/camera-model.js'
import { plainBaseline } from '../../../src/tools/optimize/run-optimize.js'
import { checkResultPlace, writeResult } from '../../../src/tools/optimize/write-result.js'
import { tempDir } from '../../support/temp-dir.js'

const models = fileURLToPath(new URL('../../../models', import.meta.url))

it('writes the model, and an ensemble for cameras like the one that it is of', () => {
  const { ensemble, detector } = findCameraModel(models, 'ppe')
  const repository = tempDir()
  const place = {
    repository,
    name: 'fast',
    ensemble: { name: 'ppe', config: ensemble!.config, dir: ensemble!.dir, detector: detector!.name },
  }
  checkResultPlace(place)
  const best = { ...plainBaseline(2), intraOpThreads: 1, spinning: false, instances: 3 }
  const written = writeResult(models, detector!.name, best, place)
  expect(written).toEqual({ name: 'fast', path: join(repository, 'fast'), ensemble: 'ppe_fast' })
  expect(readdirSync(repository).sort()).toEqual(['fast', 'ppe_fast'])
  const found = findCameraModel([repository], 'ppe_fast')
  // What was searched is this model, on whatever device: no other one takes its place.
  expect([found.detector?.name, found.gpuDetector]).toEqual(['fast', undefined])
  expect(found.detector?.labels).toEqual(detector!.labels)
  expect(found.detector?.config.instance_group).toMatchObject([{ count: 3, kind: 'KIND_CPU' }])
  expect(() => checkResultPlace(place)).toThrow(/fast is there already/)
})
