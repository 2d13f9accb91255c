import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cameraFaults } from '../../src/config/camera-setting-faults.js'
import { analysedUrl, openedUrl } from '../../src/config/camera-url-settings.js'
import { cameraUrlFault, type UrlFault } from '../../src/config/camera-url-syntax.js'
import { cameraPatchSchema, cameraSchema } from '../../src/config/camera.js'
import { ConfigError } from '../../src/config/config-error.js'
import { loadPipeline } from '../../src/config/load.js'
import { printConfig, printConfigJson } from '../../src/config/print.js'
import { redactText, redactUrl } from '../../src/config/redact.js'
import { CameraUrlError } from '../../src/sources/source-errors.js'
import { tempFolder } from '../support/video-clips.js'

const password = 'p@ss:w/o#r?d %41"ü'

describe('the login of a camera', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  beforeAll(async () => {
    folder = await tempFolder()
  })
  afterAll(() => folder.remove())

  function load(text: string, env: Record<string, string> = {}) {
    const path = folder.file('pipeline.yaml')
    writeFileSync(path, `apiVersion: gantry/v1\n${text}`)
    return loadPipeline(path, { env }).config
  }

  function refusal(text: string, env: Record<string, string> = {}): string {
    try {
      load(text, env)
    } catch (error) {
      if (error instanceof ConfigError) return error.message
      throw error
    }
    throw new Error('it is taken')
  }

  it('R65: stands beside its URL, as it is, from the environment and from files too', () => {
    writeFileSync(folder.file('secret'), `${password}\n`)
    const { cameras } = load(
      [
        'cameras:',
        '  - { id: a, url: "rtsp://192.0.2.10/x", username: "us@er", password: "${CAMERA_PASSWORD}" }',
        '  - { id: b, url: "rtsp://192.0.2.10/x", username: u, password: "${file:secret}" }',
        '  - { id: c, url: "rtsp://192.0.2.10/x" }',
        '  - { id: d, url: "rtsp://192.0.2.10/x", username: u, password: "" }',
        '  - { id: e, url: "rtsp://192.0.2.10/x", username: "", password: "x" }',
      ].join('\n'),
      {
        CAMERA_PASSWORD: password,
        GANTRY__CAMERAS__2__USERNAME: 'admin',
        GANTRY__CAMERAS__2__PASSWORD_FILE: folder.file('secret'),
      },
    )
    expect(cameras.map(({ username, password: secret }) => [username, secret])).toEqual([
      ['us@er', password],
      ['u', password],
      ['admin', password],
      ['u', ''],
      ['', 'x'],
    ])
    expect(cameras.map((camera) => openedUrl(camera)).slice(0, 1)).toEqual([
      'rtsp://us%40er:p%40ss%3Aw%2Fo%23r%3Fd%20%2541%22%C3%BC@192.0.2.10/x',
    ])
    expect(openedUrl(cameras[3]!)).toBe('rtsp://u@192.0.2.10/x')
  })

  it('R65: goes for the sub-stream as well', () => {
    const camera = cameraSchema.parse({
      ...{ id: 'a', url: 'rtsp://192.0.2.10/1', analyseUrl: 'rtsp://192.0.2.10/2' },
      ...{ username: 'u', password: 'p' },
    })
    expect(openedUrl(camera)).toBe('rtsp://u:p@192.0.2.10/2')
    expect(openedUrl(camera, camera.url)).toBe('rtsp://u:p@192.0.2.10/1')
    expect(analysedUrl(camera)).toBe('rtsp://192.0.2.10/2')
  })

  it('S14: is in no print of the settings', () => {
    const config = load(
      [
        'cameras:',
        `  - { id: a, url: "rtsp://192.0.2.10/x", username: canary-user, password: 'canary"x' }`,
        `  - { id: b, url: 'rtsp://canary:c"anary@192.0.2.10/x' }`,
        `  - { id: c, url: 'http://192.0.2.10/x?u=canary&p=canary' }`,
        'sinks: { kafka: { brokers: ["h:9092"], sasl: { mechanism: plain, username: shown, password: canary } } }',
      ].join('\n'),
    )
    for (const text of [printConfig(config), printConfigJson(config)]) {
      expect(text).not.toMatch(/canary|anary/)
      expect(text).toMatch(/username"?: "?\*\*\*/)
      expect(text).toContain('shown')
    }
  })

  it.each([
    [
      'url: "rtsp://admin:s3c@ret#canary@192.0.2.10/x"',
      'write @ as %40 and # as %23 in user name and password: rtsp://***@192.0.2.10/x, or set username and password beside the URL',
    ],
    ['url: "rtsp://admin:s3c/canary@cam/x"', 'write / as %2F in user name and password: rtsp://***@cam/x'],
    ['url: "rtsp://admin:${PASSWORD}@192.0.2.10/x"', 'write # as %23'],
    [
      'url: "rtsp://192.0.2.10/x", username: u',
      'cameras[0].password: is missing beside username; give it too',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: ~',
      'cameras[0].password: is missing beside username',
    ],
    ['url: "rtsp://192.0.2.10/x", password: "s3canary"', 'cameras[0].username: is missing beside password'],
    [
      'url: "rtsp://u:s3c@192.0.2.10/x", username: u, password: "s3canary"',
      'cameras[0].username: stands beside url, which holds a login too; keep one of them: username and password, or the login in url',
    ],
    [
      'url: "rtsp://192.0.2.10/x", analyseUrl: "rtsp://u:canary@192.0.2.10/y", username: u, password: "s3canary"',
      'cameras[0].username: stands beside analyseUrl, which holds a login too',
    ],
    [
      'url: "push:", username: u, password: "s3canary"',
      'cameras[0].username: stands beside a url that takes no login; leave it out',
    ],
    [
      'url: clip.mp4, username: u, password: "s3canary"',
      'cameras[0].username: stands beside a url that takes no login',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: "s3c\\ncanary"',
      'cameras[0].password: must hold no line ends',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: "u\\0", password: "s3canary"',
      'cameras[0].username: must hold no line ends',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: 314159',
      'cameras[0].password: must be a text, not a number; write it in quotes: "..."',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: [canary]',
      'cameras[0].password: must be a text, not a list',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: "***"',
      'cameras[0].password: is ***, which is shown in place of what it was',
    ],
    ['url: "rtsp://***@192.0.2.10/x"', 'cameras[0].url: has *** in place of its login'],
    ['url: "http://192.0.2.10/x?user=***&pwd=***"', 'cameras[0].url: has *** in place of its login'],
    [
      'url: "http://192.0.2.10/x?user=a&password=s3c#canary"',
      'cameras[0].url: has "#" behind a password; write it as %23',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: "a${s3 canary}b"',
      'cameras[0].password: a "${...}" in it is not understood',
    ],
    ['url: "rtsp://u:${s3 canary}@192.0.2.10/x"', 'cameras[0].url: a "${...}" in it is not understood'],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: !s3canary',
      'a value that begins with "!" is a tag in YAML: write the text in quotes',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: *s3canary',
      'a value that begins with "*" is an alias in YAML',
    ],
    [
      'url: "rtsp://192.0.2.10/x", username: u, password: "s3\\canary"',
      'a "\\" inside of "..." begins an escape',
    ],
  ])('S14: %s is refused, and told without it', (settings, told) => {
    const text = refusal(`cameras:\n  - { id: a, ${settings} }`, { PASSWORD: 's3c#canary' })
    expect(text).toContain(told)
    expect(text).not.toMatch(/canary|s3c|314159/)
  })

  it.each([
    [
      'cache',
      'redis: "redis://:s3c@ret#canary@192.0.2.10"',
      'cache.redis: has a login that is not escaped and would be cut in the wrong place; write @ as %40 and # as %23 in it: redis://***@192.0.2.10',
    ],
    ['cache', 'redis: "redis://default:12/canary@h:6379"', 'write / as %2F in it'],
    ['cache', 'redis: "redis://:canary/x@h:6379"', 'write / as %2F in it'],
    [
      'cache',
      'redis: "redis://:canary%@h:6379"',
      'cache.redis: has a "%" in its login that begins no escape of UTF-8; write % as %25',
    ],
    ['cache', 'redis: "redis://:canary x@h:6379"', 'write a space as %20 in it'],
    ['cache', 'redis: "http://:canary@h:6379"', 'cache.redis: must be a redis:// or rediss:// URL'],
    ['models', 'cache: { redis: "redis://:s3c@ret#canary@192.0.2.10" }', 'write @ as %40 and # as %23 in it'],
    [
      'sinks',
      'kafka: { brokers: ["u:canary@h:9092"] }',
      'must be host:port; a login goes into sinks.kafka.sasl',
    ],
    [
      'sinks',
      'kafka: { brokers: ["canary@h:9092"] }',
      'must be host:port; a login goes into sinks.kafka.sasl',
    ],
    [
      'sinks',
      'kafka: { brokers: ["h:9092"], sasl: { mechanism: plain, username: u, password: 314159 } }',
      'must be a text, not a number',
    ],
  ])('S14: so is that of %s: %s', (section, settings, told) => {
    const text = refusal(`${section}: { ${settings} }`)
    expect(text).toContain(told)
    expect(text).not.toMatch(/canary|s3c|314159/)
  })

  it.each([
    'redis://h',
    'redis://:p%40ss%23w@h:6379/2',
    'rediss://u:p@ss@h:1',
    'redis://u:p:a@h',
    'redis://[::1]:6379/0?family=6',
  ])('takes %s', (redis) => {
    expect(load(`cache: { redis: "${redis}" }`).cache.redis).toBe(redis)
  })

  it('R65: is changed in part: what is not named stays, null takes it away', () => {
    const { username, password: secret } = cameraPatchSchema.parse({ username: null, password: 'x' })
    expect([username, secret]).toEqual([null, 'x'])
    expect(cameraFaults({ username: 'a' })).toEqual([])
    expect(cameraFaults({ password: 'a', sampleFps: 0 })).toEqual([])
  })

  it.each([
    ['rtsp://admin:pa ss@host/x', 'rtsp://***@host/x'],
    ['rtsp://admin:pa"s\'s<>@host/x', 'rtsp://***@host/x'],
    ['rtsp://admin:pa\nss@host/x', 'rtsp://***@host/x'],
    ['admin:secret@cam/s', '***@cam/s'],
    ['admin:se/cr#et@cam/s', '***@cam/s'],
    ['file:clip@home.mp4', 'file:clip@home.mp4'],
    ['http://cam/v?u=admin&p=x y#z&c=1', 'http://cam/v?u=***&p=***&c=1'],
    [
      'http://cam/v?loginuse=a&loginpas=b&psw=c&pw=d',
      'http://cam/v?loginuse=***&loginpas=***&psw=***&pw=***',
    ],
    ['rtsp://cam.example:554/a@b/c', 'rtsp://cam.example:554/a@b/c'],
    ['rtsp://192.0.2.10/a@b', 'rtsp://192.0.2.10/a@b'],
    ['rtsp://cam/a@b', 'rtsp://cam/a@b'],
    ['rtsp://cam:8554/a@b', 'rtsp://***@b'],
    ['file:///media/clip@home#1.mp4', 'file:///media/clip@home#1.mp4'],
    ['clip@home#1.mp4', 'clip@home#1.mp4'],
  ])('S14: %j is shown as %s, and sent back as that', (url, shown) => {
    expect(redactUrl(url)).toBe(shown)
    expect(redactText(JSON.stringify({ url: shown }))).toBe(JSON.stringify({ url: shown }))
  })

  it('S14: no refusal of a URL tells a part of its login', () => {
    for (const password of [
      'c4nary#',
      'c4n@ry/x',
      'c4nary x',
      'c4n"ary?',
      "c4n'ary/",
      'c4<nary>#',
      'c4nary\\',
      '1/c4nary',
      'c4nary%/',
      'c4nary\n',
    ])
      for (const scheme of ['rtsp', 'http', 'gopher', 'push', 'file'])
        for (const host of ['192.0.2.10/x', 'cam/x', 'cam', 'c am/x', '/', ':0/x']) {
          const fault = cameraUrlFault(`${scheme}://admin:${password}@${host}`)
          expect(JSON.stringify(fault ?? '')).not.toMatch(/c4n|nary|n@ry/)
        }
    for (const url of [
      'admin:c4n/ary@cam/s',
      'admin:c4nary#@cam',
      'admin:12/c4nary@192.0.2.10/x',
      'c4nary:/x@cam',
    ]) {
      const { message, hint } = new CameraUrlError(url, ...wordsOf(cameraUrlFault(url)))
      expect(message + hint).not.toMatch(/c4n|ary/)
    }
  })
})

function wordsOf(fault: UrlFault | undefined): [string, string] {
  return [fault?.problem ?? 'is taken: c4nary', fault?.fix ?? '']
}
