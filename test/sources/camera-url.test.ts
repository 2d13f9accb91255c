import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cameraSchema } from '../../src/config/camera.js'
import { validateCameraUrl } from '../../src/sources/camera-url.js'
import { inSoftware } from '../../src/sources/decode-ways.js'
import { decoderArguments } from '../../src/sources/ffmpeg-command.js'
import { CameraUrlError } from '../../src/sources/source-errors.js'
import { tempFolder } from '../support/video-clips.js'

/** What a gate adds to the URL that it gives. */
const ways = { proxyUrl: 'http://127.0.0.1:9', playList: false, transport: 'tcp' } as const
const format = { input: { widthPx: 640, heightPx: 640 }, align: 'center' } as const

describe('a camera URL', () => {
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let mediaRoot: string

  beforeAll(async () => {
    folder = await tempFolder()
    mediaRoot = folder.file('media')
    mkdirSync(join(mediaRoot, 'stills'), { recursive: true })
    for (const name of [
      'a.mp4',
      'with space.mp4',
      '-dash.mp4',
      'per%cent.mp4',
      'gate@home#1.mp4',
      'list.m3u8',
      'script.ffconcat',
    ])
      writeFileSync(join(mediaRoot, name), 'x')
    writeFileSync(folder.file('secret.mp4'), 'x')
    symlinkSync(folder.file('secret.mp4'), join(mediaRoot, 'link.mp4'))
    symlinkSync(folder.path, join(mediaRoot, 'up'))
  })
  afterAll(async () => {
    await folder.remove()
  })

  it.each([
    ['rtsp://cam.local/stream', 'rtsp://cam.local/stream'],
    ['rtsp://10.0.0.7:554/Streaming/Channels/102?transportmode=unicast', undefined],
    ['rtsps://[fd00::1]:322/live', 'rtsps://[fd00::1]:322/live'],
    ['RTSP://Cam/Stream', 'rtsp://Cam/Stream'],
    ['rtsp://user@cam/s', 'rtsp://user:@cam/s'],
    ['rtsp://admin:p@ss@cam/s', 'rtsp://admin:p%40ss@cam/s'],
    ['rtsp://admin:p%40ss%3A%2F@cam/s', 'rtsp://admin:p%40ss%3A%2F@cam/s'],
    ['rtsp://admin:100%@cam/s', 'rtsp://admin:100%25@cam/s'],
    ['rtsp://admin:p%E4ss@cam/s', 'rtsp://admin:p%E4ss@cam/s'],
    ['rtsp://user:pa:ss@host/s', 'rtsp://user:pa%3Ass@host/s'],
    ['rtsp://us@er:pw@host/s', 'rtsp://us%40er:pw@host/s'],
    ['rtsp://:pw@cam/s', 'rtsp://:pw@cam/s'],
    ['rtsp://@cam/s', 'rtsp://cam/s'],
    ['rtsp://cam/a@b?c=d@e', undefined],
    ['rtsp://admin:pw@192.0.2.10/a@b', 'rtsp://admin:pw@192.0.2.10/a@b'],
    ['rtsp://admin:pw@[2001:db8::7]:554/a@b', 'rtsp://admin:pw@[2001:db8::7]:554/a@b'],
    ["rtsp://admin:pä!'()*@cam/s", 'rtsp://admin:p%C3%A4%21%27%28%29%2A@cam/s'],
    ['rtsp://cam/s#fragment', 'rtsp://cam/s'],
    ['http://cam:8080/video.mjpg', undefined],
    ['https://cam/live/index.m3u8?token=abc', undefined],
  ])('%s is opened', async (url, normal = url) => {
    const location = await validateCameraUrl(url, { mediaRoot })
    expect(location).toEqual({ kind: url.toLowerCase().startsWith('rtsp') ? 'rtsp' : 'http', url: normal })
  })

  it.each([
    ['a.mp4', 'a.mp4'],
    ['./a.mp4', 'a.mp4'],
    ['with space.mp4', 'with space.mp4'],
    ['gate@home#1.mp4', 'gate@home#1.mp4'],
    ['./-dash.mp4', '-dash.mp4'],
    ['stills/../a.mp4', 'a.mp4'],
  ])('%s is a file of the media folder', async (url, name) => {
    expect(await validateCameraUrl(url, { mediaRoot })).toEqual({ kind: 'file', path: join(mediaRoot, name) })
  })

  it('takes file URLs, folders and push:', async () => {
    const file = { kind: 'file', path: join(mediaRoot, 'per%cent.mp4') }
    expect(await validateCameraUrl(`file://${mediaRoot}/per%25cent.mp4`, { mediaRoot })).toEqual(file)
    const stills = { kind: 'folder', path: join(mediaRoot, 'stills') }
    expect(await validateCameraUrl('stills', { mediaRoot })).toEqual(stills)
    expect(await validateCameraUrl('push:', { mediaRoot })).toEqual({ kind: 'push' })
  })

  it.each([
    // ffmpeg protocols that read, write or run something else
    'concat:a.mp4|/etc/passwd',
    'concatf:list.txt',
    'subfile,,start,0,end,99,,:/etc/passwd',
    'data:video/mp4;base64,AAAA',
    'pipe:0',
    'pipe:',
    'exec:sh -c id',
    'fd:0',
    'cache:rtsp://cam/s',
    'crypto:a.mp4',
    'async:a.mp4',
    'tee:a.mp4',
    'md5:a.mp4',
    'unix:/run/docker.sock',
    'tcp://127.0.0.1:22',
    'tls://cam:443',
    'udp://239.0.0.1:1234',
    'rtp://127.0.0.1:5004',
    'rtmp://cam/live',
    'srt://cam:9000',
    'sftp://cam/file',
    'ftp://cam/file',
    'gopher://cam/1',
    'hls+http://cam/list.m3u8',
    'hls://cam/list.m3u8',
    'smb://host/share',
    'bluray:/dev/sr0',
    'lavfi:testsrc',
    'javascript:alert(1)',
    // options and control characters
    '-i',
    '-f tee',
    '--help',
    'rtsp://cam/s\n-i /etc/passwd',
    'rtsp://cam/s\u0000',
    'rtsp://cam/\u001b[31ms',
    '\trtsp://cam/s',
    ' rtsp://cam/s',
    'rtsp://cam/s ',
    'rtsp://cam/two words',
    'a.mp4\u2028b',
    // broken network URLs
    '',
    ' ',
    'rtsp:',
    'rtsp://',
    'rtsp:///path',
    'rtsp:cam/s',
    'rtsp://...',
    '192.0.2.10',
    '192.0.2.10:554/stream',
    'cam.local:554/stream',
    'admin:secret@cam/s',
    'rtsp://cam:0/s',
    'rtsp://cam:99999/s',
    'rtsp://admin:pa/ss@cam/s',
    'rtsp://admin:p@ss/word@cam/s',
    'rtsp://admin:p@ss#word@192.0.2.10/x',
    'rtsp://admin:p?ss@cam/s',
    'rtsp://admin:12/34@192.0.2.10/s',
    'rtsp://admin:50%%40@cam/s',
    'rtsp://***@cam/s',
    'rtsp://cam|x/s',
    'rtsp://cam\\evil/s',
    'http://exa mple/s',
    'http://cam%00/s',
    // no address of a camera, in whatever form
    'http://169.254.169.254/latest/meta-data',
    'rtsp://169.254.1.7/s',
    'rtsp://2852039166/s',
    'rtsp://0xa9.254.0376.254/s',
    'rtsp://[::ffff:169.254.169.254]/s',
    'rtsp://[fe80::1]/s',
    'http://[fd00:ec2::254]/',
    'http://100.100.100.200/',
    'rtsp://0/s',
    'rtsp://0.0.0.0:8554/s',
    'http://[::]:8000/',
    'rtsp://239.0.0.1/s',
    'http://255.255.255.255/',
    // outside of the media folder, or no video
    '/etc/passwd',
    '../secret.mp4',
    'stills/../../secret.mp4',
    'link.mp4',
    'up/secret.mp4',
    'file:///etc/passwd',
    'file://host/share/a.mp4',
    'file:a.mp4%00',
    'file:%2e%2e/secret.mp4',
    'file:///proc/self/environ',
    'missing.mp4',
    'list.m3u8',
    'script.ffconcat',
    'push:everything',
  ])('S1: %j is refused with a reason and a fix', async (url) => {
    const error = await validateCameraUrl(url, { mediaRoot }).then(
      (location) => new Error(`opened as ${JSON.stringify(location)}`),
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(CameraUrlError)
    const { code, hint, message } = error as CameraUrlError
    expect(code).toBe('GANTRY_CAMERA_URL')
    expect(hint.length).toBeGreaterThan(5)
    expect(message).not.toMatch(/[\p{Cc}\p{Zl}]/u)
  })

  it('shows no password when it refuses one', async () => {
    const url = 'rtsp://admin:c4nary@pw/x@cam/s'
    await expect(validateCameraUrl(url, { mediaRoot })).rejects.toThrow(/^(?!.*c4nary)/)
  })

  const nasty = fc.string({
    unit: fc.constantFrom(
      ...'ab:/@%|,-.\\\'"; \n\u0000#?[]()=&$`é',
      'rtsp://',
      'http://',
      'file:',
      'concat:',
      'pipe:',
      '-i',
      '../',
    ),
    maxLength: 24,
  })

  it('S1: never lets a text become an option, a second input or a protocol of its own', async () => {
    await fc.assert(
      fc.asyncProperty(nasty, async (url) => {
        const location = await validateCameraUrl(url, { mediaRoot }).catch(() => undefined)
        // Others have no decoder.
        if (location?.kind !== 'file' && location?.kind !== 'rtsp' && location?.kind !== 'http') return
        const camera = cameraSchema.parse({ id: 'cam', url: url || 'x' })
        const input = location.kind === 'file' ? location : { ...location, ...ways }
        const args = decoderArguments(camera, input, format, inSoftware)
        const inputs = args.flatMap((arg, index) => (arg === '-i' ? [args[index + 1] ?? ''] : []))
        expect(inputs).toHaveLength(1)
        expect(inputs[0]).toMatch(
          location.kind === 'file' ? /^file:\// : /^(rtsps?|https?):\/\/[^\s\p{Cc}\\]+$/u,
        )
        // All else is the same for every camera of the kind.
        const plain =
          location.kind === 'file'
            ? ({ kind: 'file', path: '/x' } as const)
            : { kind: location.kind, url: 'x', ...ways }
        expect(args.filter((arg) => arg !== inputs[0])).toEqual(
          decoderArguments(camera, plain, format, inSoftware).filter(
            (arg) => arg !== 'x' && arg !== 'file:/x',
          ),
        )
        expect(args[args.indexOf('-protocol_whitelist') + 1]).toMatch(
          location.kind === 'file' ? /^file$/ : /^(?!.*(file|pipe|data|concat|subfile))/,
        )
      }),
      { numRuns: 2_000 },
    )
  })

  it.each(['ffmpeg', 'ffmpegArgs', 'inputOptions', 'outputOptions', 'options', 'args', 'filter', '-i'])(
    'S2: has no setting %j, by which options of ffmpeg could come in',
    (name) => {
      const camera = { id: 'cam', url: 'rtsp://cam/s', [name]: '-f tee' }
      expect(cameraSchema.safeParse(camera).success).toBe(false)
    },
  )

  it.each(['transport', 'hwaccel', 'sampleFps'])('S2: takes no text in %s beside what it knows', (name) => {
    const camera = { id: 'cam', url: 'rtsp://cam/s', [name]: 'tcp -dump_attachment:t x' }
    expect(cameraSchema.safeParse(camera).success).toBe(false)
  })
})
