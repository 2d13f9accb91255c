import { utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { comparisonText, isFasterInFloat16 } from '../../src/detector/float16.js'
import { Float16Findings } from '../../src/detector/float16-findings.js'
import { tempDir } from '../support/temp-dir.js'

const card = (uuid: string | undefined) => () => Promise.resolve(uuid)
const finding = { size: 8, ms: 4.9, float16Ms: 3.1 }

function compared(size = 8) {
  const dir = tempDir()
  const paths = [join(dir, 'a.onnx'), join(dir, 'b.onnx')] as const
  for (const path of paths) writeFileSync(path, path)
  return { paths, size, deviceId: 0 }
}

it('what was measured is found again on the same card with the same files', async () => {
  const folder = tempDir()
  const own = compared()
  await new Float16Findings(() => folder, card('GPU-1 580')).keep(own, finding)
  const again = new Float16Findings(() => folder, card('GPU-1 580'))
  expect(await again.find(own)).toEqual(finding)
  expect(await new Float16Findings(() => folder, card('GPU-2 580')).find(own)).toBeUndefined()
  expect(await new Float16Findings(() => folder, card('GPU-1 590')).find(own)).toBeUndefined()
  expect(await again.find({ ...own, size: 16 })).toBeUndefined()
  utimesSync(own.paths[1], 1, 1)
  expect(await again.find(own)).toBeUndefined()
})

it('nothing is kept of a card that does not say which it is, or without a folder', async () => {
  const own = compared()
  for (const findings of [
    new Float16Findings(tempDir, card(undefined)),
    new Float16Findings(() => '/no/such/folder', card('GPU-1')),
  ]) {
    await findings.keep(own, finding)
    expect(await findings.find(own)).toBeUndefined()
  }
})

it('a damaged file is none', async () => {
  const folder = tempDir()
  const findings = new Float16Findings(() => folder, card('GPU-1'))
  const own = compared()
  for (const text of ['{', '[]', 'null', '{"a":{"size":8,"ms":"4","float16Ms":3}}']) {
    writeFileSync(join(folder, 'float16.json'), text)
    expect(await findings.find(own)).toBeUndefined()
  }
  await findings.keep(own, finding)
  expect(await findings.find(own)).toEqual(finding)
})

it('float16 is taken where it gains something, and told with both figures', () => {
  expect(isFasterInFloat16(finding)).toBe(true)
  expect(isFasterInFloat16({ ...finding, float16Ms: 4.8 })).toBe(false)
  expect(isFasterInFloat16({ size: 8, ms: 4.9, reason: 'no kernel' })).toBe(false)
  expect(comparisonText(finding)).toBe('float16 takes 3.1 ms for a batch of 8, float32 4.9 ms')
  expect(comparisonText({ size: 8, ms: 4.9, reason: 'no kernel' })).toBe(
    'float16 does not run: no kernel; float32 4.9 ms for a batch of 8',
  )
})
