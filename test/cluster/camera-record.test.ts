import { describe, expect, it } from 'vitest'
import { cameraRecordValue, parseCameraRecord } from '../../src/cluster/camera-record.js'
import { cameraSchema, type CameraConfig } from '../../src/config/camera.js'

const url = 'rtsp://user:p%40ss@192.0.2.7/stream'
const bytes = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value), 'utf8')
const camera = (more: object = {}): CameraConfig => cameraSchema.parse({ id: 'dock', url, ...more })

describe('the record of a camera', () => {
  it.each([
    {},
    { name: 'Dock 7', sampleFps: 12.5, enabled: false },
    { analyseUrl: 'rtsp://192.0.2.7/sub', username: 'user', password: 'p@ss' },
    { region: { x: 0.1, y: 0, width: 0.5, height: 1 } },
    { staticScene: { maxAgeMs: 500 } },
  ])('has all that was set: %o', (more) => {
    const config = camera(more)
    expect(parseCameraRecord('dock', bytes(cameraRecordValue(config)))).toEqual({ kind: 'camera', config })
  })

  it('leaves out what is as usual, so that versions which know fewer settings can follow it', () => {
    expect(JSON.parse(cameraRecordValue(camera({ sampleFps: 7 })))).toEqual({
      version: 1,
      camera: { id: 'dock', url, sampleFps: 7 },
    })
  })

  it('is a removal without a value', () => {
    expect(parseCameraRecord('dock', null)).toEqual({ kind: 'removed' })
  })

  it.each([
    ['a later version, whatever else it says', { version: 2, cameras: [] }, { kind: 'newer', version: 2 }],
    ['an earlier version', { version: 0, camera: { url } }, /version/],
    ['a version in quotes', { version: '1', camera: { url } }, /version/],
    ['bytes that are no UTF-8', Buffer.from([0x7b, 0xff]), /no JSON/],
    ['another key of the camera', { version: 1, camera: { url, id: 'gate' } }, /camera\.id/],
    ['a setting that is none', { version: 1, camera: { url, fps: 1 } }, /camera\.fps/],
  ])('tells %s', (_, value, told) => {
    const read = parseCameraRecord('dock', Buffer.isBuffer(value) ? value : bytes(value))
    if (told instanceof RegExp) {
      expect(read.kind).toBe('invalid')
      expect(read).toHaveProperty('reason', expect.stringMatching(told))
    } else expect(read).toEqual(told)
  })
})
