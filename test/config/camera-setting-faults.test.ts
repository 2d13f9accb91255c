import { describe, expect, it } from 'vitest'
import { cameraFaults } from '../../src/config/camera-setting-faults.js'
import { cameraUrlSettings } from '../../src/config/camera-url-settings.js'

const faults = (camera: unknown) =>
  cameraFaults(camera).map(({ setting, problem }) => `${setting} ${problem}`)

describe('what is wrong with a camera', () => {
  it.each(cameraUrlSettings)('is told of %s, and nothing of its login', (setting) => {
    const camera = { url: 'rtsp://192.0.2.1/1', [setting]: 'gopher://admin:canary@192.0.2.1/2' }
    expect(faults(camera)).toEqual([`${setting} has the scheme "gopher:", which is not opened`])
    expect(JSON.stringify(cameraFaults(camera))).not.toContain('canary')
  })

  it.each([
    [
      { url: 'push:', decode: 'keyframes' },
      'decode is keyframes, and pictures that are pushed are no stream',
    ],
    [{ url: 'PUSH:', decode: 'fast' }, 'decode is fast, and pictures that are pushed are no stream'],
    [{ url: 'push:', videoTrack: 2 }, 'videoTrack is 2, and pictures that are pushed are one after another'],
    [
      { url: 'push:', analyseUrl: 'rtsp://192.0.2.1/2' },
      'analyseUrl stands beside pictures that are pushed, which have no other stream',
    ],
    [{ url: 'rtsp://192.0.2.1/1', analyseUrl: 'push:' }, 'analyseUrl is push:, which is no stream'],
    [{ analyseUrl: 'push:' }, 'analyseUrl is push:, which is no stream'],
    [
      { displayAspectRatio: '16:9', sampleAspectRatio: '2:1' },
      'sampleAspectRatio stands beside displayAspectRatio, which says the same in another way',
    ],
  ])('is that %j do not go together', (camera, fault) => {
    expect(faults(camera)).toEqual([fault])
  })

  it.each([
    { url: 'push:', decode: 'auto' },
    { url: 'push:', decode: 'full' },
    { url: 'push:', analyseUrl: null },
    { url: 'rtsp://192.0.2.1/1', analyseUrl: 'rtsp://192.0.2.1/2', decode: 'keyframes' },
    { decode: 'keyframes' },
    { displayAspectRatio: '16:9', sampleAspectRatio: null },
    { url: 7, analyseUrl: {}, decode: [] },
    undefined,
    null,
    'push:',
  ])('is nothing of %j', (camera) => {
    expect(cameraFaults(camera)).toEqual([])
  })
})
