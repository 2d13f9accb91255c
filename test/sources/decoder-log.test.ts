import { describe, expect, it } from 'vitest'
import { parseDecoderLine } from '../../src/sources/decoder-log.js'
import { failureOf, networkFailures } from '../../src/sources/failure-reason.js'
import { LineSplitter } from '../../src/sources/line-splitter.js'
import { LogLimiter } from '../../src/sources/log-limiter.js'
import { SuspectTracker } from '../../src/sources/suspect-tracker.js'

describe('parseDecoderLine', () => {
  it.each([
    ['a picture', '[warning] 0.200000', { kind: 'picture', ptsMs: 200 }],
    ['a picture after days', '[warning] 432000.040000', { kind: 'picture', ptsMs: 432_000_040 }],
    ['a picture without time', '[warning] nan', { kind: 'picture', ptsMs: null }],
    [
      'the size of pictures',
      '[info] -41943400.000000',
      { kind: 'size', source: { widthPx: 640, heightPx: 360 } },
    ],
    [
      'the size of the smallest picture',
      '[info] -65537.000000',
      { kind: 'size', source: { widthPx: 1, heightPx: 1 } },
    ],
    [
      'the size of pictures with square pixels',
      `[info] -${65_536 * 2 ** 32 + 640 * 65_536 + 360}.000000`,
      {
        kind: 'size',
        source: { widthPx: 640, heightPx: 360 },
        aspect: { pixelAspect: 1, isUnbelieved: false },
      },
    ],
    [
      'the size of pictures whose pixels are as wide as any',
      `[info] -${8 * 65_536 * 2 ** 32 + 65_535 * 65_536 + 65_535}.000000`,
      {
        kind: 'size',
        source: { widthPx: 65_535, heightPx: 65_535 },
        aspect: { pixelAspect: 8, isUnbelieved: false },
      },
    ],
    [
      'the size of pictures whose pixels are wider than any',
      `[info] -${1_114_112 * 2 ** 32 + 65_535 * 65_536 + 65_535}.000000`,
      {
        kind: 'size',
        source: { widthPx: 65_535, heightPx: 65_535 },
        aspect: { pixelAspect: 1, isUnbelieved: true },
      },
    ],
    [
      'pixels of another shape',
      `[info] -${1.5 * 65_536 * 2 ** 32}.000000`,
      { kind: 'pixels', aspect: { pixelAspect: 1.5, isUnbelieved: false } },
    ],
    [
      'a shape of pixels that H.264 does not allow',
      '[h264 @ 0x55d0] [warning] ignoring invalid SAR: 1/0',
      { kind: 'unbelieved', text: 'ignoring invalid SAR: 1/0' },
    ],
    [
      'a number of a shape that there is not',
      '[hevc @ 0x55d0] [warning] Unknown SAR index: 200.',
      { kind: 'unbelieved' },
    ],
    ['a key frame', '[info] 250.040000', { kind: 'key', ptsMs: 250_040 }],
    [
      'a picture, told by ffmpeg 9',
      '[Eval @ 0x7ffc5d3a7ea0] [warning] 0.200000',
      { kind: 'picture', ptsMs: 200 },
    ],
    ['a key frame without time, told by ffmpeg 9', '[Eval @ 0x1] [info] nan', { kind: 'key', ptsMs: null }],
    ['a key frame before the beginning', '[info] -0.040000', { kind: 'key', ptsMs: -40 }],
    ['a key frame without time', '[info] nan', { kind: 'key', ptsMs: null }],
    ['the container', "[info] Input #0, mpjpeg, from 'http://cam/v':", { kind: 'input', format: 'mpjpeg' }],
    [
      'a stream of RTSP',
      '[info]   Stream #0:0: Video: h264 (High), yuv420p(progressive), 320x180, 25 fps',
      { kind: 'stream', codec: 'h264' },
    ],
    [
      'a stream of a file',
      '[info]   Stream #0:1[0x2](und): Video: hevc (Main) (hev1 / 0x31766568), yuv420p(tv), 320x180',
      { kind: 'stream', codec: 'hevc' },
    ],
    ['sound', '[info]   Stream #0:1: Audio: aac', { kind: 'chatter' }],
    ['damage', '[h264 @ 0x1] [error] error while decoding MB 11 0', { kind: 'damage' }],
    ['a damaged frame', '[warning] rtsp://x: corrupt decoded frame in stream 0', { kind: 'damage' }],
    ['lost packets', '[rtsp @ 0x1] [warning] RTP: missed 6 packets', { kind: 'damage' }],
    [
      'an error of another part',
      '[tcp @ 0x1] [error] Connection refused',
      { kind: 'message', level: 'error' },
    ],
    ['a missing device', '[h264 @ 0x1] [error] No device available for decoder', { kind: 'message' }],
    ['a number in words of ffmpeg', '[warning] Frame rate 25.000000', { kind: 'message' }],
    [
      'what is usual',
      '[rtsp @ 0x1] [warning] Stream #0: not enough frames to estimate rate',
      { kind: 'chatter' },
    ],
    ['nothing', '', { kind: 'chatter' }],
  ])('understands %s', (_, line, meaning) => {
    expect(parseDecoderLine(line)).toMatchObject(meaning)
  })
})

describe('SuspectTracker', () => {
  it('doubts from the first damage to the next key frame', () => {
    const tracker = new SuspectTracker()
    tracker.key(0, 0)
    expect(tracker.suspect).toBe(false)
    tracker.damage('error while decoding MB', 100)
    expect(tracker.suspect).toBe(true)
    tracker.key(1_000, 1_000)
    expect(tracker.suspect).toBe(false)
  })

  it('does not take a key frame that was decoded before the damage for the end of it', () => {
    const tracker = new SuspectTracker()
    tracker.damage('error while decoding MB', 100)
    tracker.picture(160)
    tracker.key(200, 180)
    expect(tracker.suspect).toBe(true)
  })

  it('sees the end of the damage by stream time when all is read at once, and late', () => {
    const tracker = new SuspectTracker()
    tracker.key(0, 0)
    tracker.damage('RTP: missed 6 packets', 2_000)
    for (let ptsMs = 160; ptsMs < 500; ptsMs += 20) tracker.picture(ptsMs)
    tracker.key(500, 2_000)
    expect(tracker.suspect).toBe(false)
  })

  it('counts from the last of several complaints', () => {
    const tracker = new SuspectTracker()
    tracker.damage('error while decoding MB', 0)
    tracker.picture(0)
    tracker.damage('error while decoding MB', 0)
    tracker.key(300, 0)
    expect(tracker.suspect).toBe(true)
  })

  it('goes by the clock where the stream has no time', () => {
    const tracker = new SuspectTracker()
    tracker.damage('error while decoding MB', 0)
    tracker.picture(null)
    tracker.key(null, 249)
    expect(tracker.suspect).toBe(true)
    tracker.key(null, 250)
    expect(tracker.suspect).toBe(false)
  })

  it('forgives what every decoder says that joins between two key frames, once only', () => {
    const tracker = new SuspectTracker()
    expect(tracker.damage('non-existing PPS 0 referenced', 0)).toBe(false)
    expect(tracker.damage('no frame!', 1)).toBe(false)
    tracker.key(0, 2)
    expect(tracker.suspect).toBe(false)
    expect(tracker.damage('no frame!', 10)).toBe(true)
  })
})

describe('failureOf', () => {
  it.each([
    ['method DESCRIBE failed: 401 Unauthorized', 'credentials refused (401)', 'slow'],
    [
      'method SETUP failed: 461 Unsupported transport',
      'transport refused: set transport to the other of tcp and udp',
      'normal',
    ],
    ['rtsp://***@cam/s: Connection timed out', networkFailures.timedOut, 'normal'],
    ['Failed to resolve hostname cam: Name or service not known', networkFailures.unknownHost, 'normal'],
    [
      'setpriv: failed to execute ffmpeg: No such file or directory',
      'ffmpeg is not installed: apt-get install ffmpeg',
      'never',
    ],
    ["Stream map '0:v:0' matches no streams.", 'no video in the stream', 'normal'],
    ['something new', 'the decoder ended', 'normal'],
  ])('reads %j', (line, reason, retry) => {
    expect(failureOf([line], false)).toEqual({ reason, retry })
  })

  it.each([
    ['setpriv: failed to execute ffmpeg: Resource temporarily unavailable', /^no further process or thread/],
    ['setpriv: failed to execute ffmpeg: Cannot allocate memory', /^the system has no memory left/],
    ['setpriv: failed to execute ffmpeg: Permission denied', /^this user has no permission/],
    [
      'setpriv: failed to execute ffmpeg: Too many open files in system',
      /^no file descriptor is left in the whole/,
    ],
    [
      'ffmpeg: error while loading shared libraries: a.so: Too many open files',
      /^no file descriptor is left for/,
    ],
    ['[error] pthread_create() failed: Resource temporarily unavailable', /^no further process or thread/],
    ['[error] clip.mp4: Permission denied', /^file may not be read by this user$/],
    ['[error] No space left on device', /^the disk is full/],
  ])('R23: knows the limit of the system in %j, which is tried again', (line, reason) => {
    for (const isLocalFile of [true, false])
      expect(failureOf([line], isLocalFile)).toMatchObject({
        reason: expect.stringMatching(reason) as string,
        retry: 'normal',
      })
  })

  it.each([
    ['[error] clip.mp4: Input/output error', /^the disk or network share gave an error$/],
    ['[error] clip.mp4: Stale file handle', /^its network share was replaced/],
  ])('R23: tries a file again that its disk did not give: %j', (line, reason) => {
    expect(failureOf([line], true)).toMatchObject({
      reason: expect.stringMatching(reason) as string,
      retry: 'normal',
    })
  })

  it('does not take the broken connection of a camera for a broken disk', () => {
    expect(failureOf(['[error] rtsp://cam/s: Input/output error'], false)).not.toHaveProperty('systemHint')
  })

  it('never tries a broken file again', () => {
    const line = 'x.mp4: Invalid data found when processing input'
    expect(failureOf([line], true)).toEqual({ reason: 'the file cannot be read as video', retry: 'never' })
  })
})

describe('LogLimiter', () => {
  it('lets ten lines pass each second and counts the rest', () => {
    const limiter = new LogLimiter(10)
    const passed = Array.from({ length: 1_000 }, (_, index) => limiter.allows(index * 2)).filter(Boolean)
    expect(passed).toHaveLength(20)
    expect(limiter.takeSuppressed()).toBe(980)
    expect(limiter.takeSuppressed()).toBe(0)
  })
})

describe('LineSplitter', () => {
  it('joins lines over chunks, even inside a character, and cuts endless ones', () => {
    const lines: string[] = []
    const splitter = new LineSplitter((line) => lines.push(line))
    const bytes = Buffer.from('one\ntwö\r\n\nthree')
    for (const byte of bytes) splitter.write(Buffer.from([byte]))
    splitter.end()
    expect(lines).toEqual(['one', 'twö', 'three'])
    for (let index = 0; index < 100; index += 1) splitter.write(Buffer.alloc(1_000, 'x'))
    splitter.end()
    expect(lines.at(-1)?.length).toBeLessThanOrEqual(2_000)
  })
})
