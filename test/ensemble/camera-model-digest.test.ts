import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { describeCameraModel } from '../../src/ensemble/camera-model-digest.js'
import { addModel, redDetector } from '../support/onnx-models.js'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function repository(files: Parameters<typeof addModel>[2]): string {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-digest-'))
  folders.push(folder)
  addModel(folder, 'red', { config: 'max_batch_size: 4', ...files })
  return folder
}

it('tells models apart by version, weights and labels, and not by where they lie', async () => {
  const onnx = redDetector('uint8-nhwc')
  const first = await describeCameraModel(repository({ onnx }), 'red')
  expect(first).toMatch(/^red version 1 \(sha256 [0-9a-f]{12}\)$/)
  expect(await describeCameraModel(repository({ onnx }), 'red')).toBe(first)
  const others = [
    repository({ onnx, version: 2 }),
    repository({ onnx: redDetector('float32-nchw') }),
    repository({ onnx, labels: 'green\nred\n' }),
  ]
  const told = await Promise.all(others.map((folder) => describeCameraModel(folder, 'red')))
  expect(new Set([first, ...told]).size).toBe(4)
})

it('says nothing of a model that cannot be read', async () => {
  expect(await describeCameraModel(repository({}), 'red')).toBe('')
  expect(await describeCameraModel(join(tmpdir(), 'gantry-no-such-folder'), 'red')).toBe('')
})
