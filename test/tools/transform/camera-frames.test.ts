import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { cameraSchema } from '../../../src/config/camera.js'
import { AddressPolicy } from '../../../src/lifecycle/address-policy.js'
import { ConnectGate } from '../../../src/sources/connect-gate.js'
import { keepCameraFrames } from '../../../src/tools/transform/camera-frames.js'
import { pictureAt } from '../../../src/tools/transform/frames.js'
import { silentLog } from '../../support/silent-log.js'
import { tempDir } from '../../support/temp-dir.js'

const mediaRoot = fileURLToPath(new URL('../../../pipelines/demo/clips', import.meta.url))
const filmed = (url: string) => ({
  camera: cameraSchema.parse({ id: 'yard', url, sampleFps: 20 }),
  setting: { mediaRoot, addresses: new AddressPolicy(), connectGate: new ConnectGate(1), log: silentLog() },
})

it('keeps the frames that a camera would have analysed, without their padding', async () => {
  const paths = await keepCameraFrames(filmed('yard.mp4'), 3, join(tempDir(), 'frames'))
  expect(paths).toHaveLength(3)
  const { widthPx, heightPx } = await pictureAt(paths[2]!)
  expect([widthPx, heightPx]).toEqual([1280, 720])
})

it('says why a camera gives none', async () => {
  await expect(keepCameraFrames(filmed('nowhere.mp4'), 3, tempDir())).rejects.toThrow(
    /camera "yard" is \w+: .*, after 0 frames/,
  )
})

it('ends with the signal', async () => {
  const work = keepCameraFrames(filmed('yard.mp4'), 1_000, tempDir(), AbortSignal.timeout(1_500))
  await expect(work).rejects.toMatchObject({ name: 'TimeoutError' })
})
