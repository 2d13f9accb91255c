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
      { kind: 'stream', index: 0, codec: 'h264', size: '320 x 180', isCover: false },
    ],
    [
      'a cover picture',
      '[info]   Stream #0:2[0x0]: Video: png, rgb24(pc), 160x120 [SAR 1:1 DAR 4:3], 90k tbr, 90k tbn (attached pic)',
      { kind: 'stream', index: 2, codec: 'png', size: '160 x 120', isCover: true },
    ],
    [
      'how long it is',
      '[info]   Duration: 01:02:03.40, start: 0.000000',
      { kind: 'length', seconds: 3_723.4 },
    ],
    ['that nobody knows how long it is', '[info]   Duration: N/A, bitrate: N/A', { kind: 'chatter' }],
    ['that all videos were told', '[info] Stream mapping:', { kind: 'chosen' }],
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
    ['a note on sound', '[mp3float @ 0x1] [error] Header missing', { kind: 'note' }],
    ['a missing device', '[h264 @ 0x1] [error] No device available for decoder', { kind: 'message' }],
    ['a number in words of ffmpeg', '[warning] Frame rate 25.000000', { kind: 'message' }],
    [
      'what decodes no picture because none is there',
      '[h264 @ 0x1] [warning] Could not find codec parameters for stream 0 (Video: h264, none): unspecified size',
      { kind: 'message', level: 'warning' },
    ],
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

describe('damage', () => {
  it.each([
    '[h264 @ 0x1] [error] error while decoding MB 11 0, bytestream -5',
    '[h264 @ 0x1] [info] concealing 120 DC, 120 AC, 120 MV errors in P frame',
    '[h264 @ 0x1] [error] Invalid NAL unit size (3591 > 3568).',
    '[h264 @ 0x1] [error] Frame num change from 5 to 12',
    '[h264 @ 0x1] [error] reference picture missing during reorder',
    '[h264 @ 0x1] [error] Missing reference picture, default is 65560',
    '[h264 @ 0x1] [error] illegal modification_of_pic_nums_idc 14',
    '[h264 @ 0x1] [error] non-existing PPS 3 referenced',
    '[hevc @ 0x1] [error] Could not find ref with POC 12',
    '[hevc @ 0x1] [error] PPS id out of range: 7',
    '[hevc @ 0x1] [warning] Error parsing NAL unit #0.',
    '[hevc @ 0x1] [warning] Skipping invalid undecodable NALU: 1',
    '[hevc @ 0x1] [error] CABAC_MAX_BIN : 7',
    '[mjpeg @ 0x1] [error] overread 8',
    '[mjpeg @ 0x1] [error] error dc',
    '[mjpeg @ 0x1] [error] error y=11 x=3',
    '[mjpeg @ 0x1] [warning] mjpeg_decode_dc: bad vlc: 0:0 (0x5600)',
    '[mpeg4 @ 0x1] [error] Error at MB: 151',
    '[mpeg2video @ 0x1] [error] ac-tex damaged at 1 11',
    '[vp9 @ 0x1] [error] Requested reference 2 not available',
    '[libdav1d @ 0x1] [error] Error parsing OBU data',
    '[warning] clip.mp4: corrupt decoded frame in stream 0',
    '[vist#0:0/h264 @ 0x1] [dec:h264 @ 0x2] [warning] corrupt decoded frame',
    '[error] Error while decoding stream #0:0: Invalid data found when processing input',
    '[vist#0:0/vp9 @ 0x1] [dec:vp9 @ 0x2] [error] Error submitting packet to decoder: Invalid data found when processing input',
    '[rtsp @ 0x1] [warning] RTP: missed 6 packets',
    '[rtsp @ 0x1] [warning] max delay reached. need to consume packet',
    '[sdp @ 0x1] [warning] RTP: PT=60: bad cseq 1f3a expected=00d1',
    '[mpegts @ 0x1] [warning] Packet corrupt (stream = 0, dts = 133200).',
    '[in#0/mpegts @ 0x1] [warning] corrupt input packet in stream 0',
    '[matroska,webm @ 0x1] [error] 0x00 at pos 4711 (0x1267) invalid as first byte of an EBML number',
  ])('R59: is what is said by %j', (line) => {
    expect(parseDecoderLine(line).kind).toBe('damage')
  })

  it.each([
    ['note', '[hevc @ 0x1] [warning] video_delay is larger in decoder than demuxer 2 > 0.'],
    ['note', '[h264 @ 0x1] [error] SEI type 5 size 800 truncated at 24'],
    ['note', '[h264 @ 0x1] [error] Error processing the picture timing SEI'],
    ['note', '[h264 @ 0x1] [error] mmco: unref short failure'],
    [
      'note',
      '[h264 @ 0x1] [error] number of reference frames (0+5) exceeds max (4; probably corrupt input), discarding one',
    ],
    ['note', '[h264 @ 0x1] [error] no frame!'],
    ['note', '[h264 @ 0x1] [error] missing picture in access unit with size 6'],
    ['note', '[h264 @ 0x1] [warning] Estimating duration from bitrate, this may be inaccurate'],
    ['note', '[hevc @ 0x1] [warning] Skipping invalid undecodable NALU: 39'],
    ['note', '[hevc @ 0x1] [error] RPU validation failed: 0 <= nal_prefix = 97 <= 0'],
    ['note', '[hevc @ 0x1] [warning] Error parsing DOVI NAL unit.'],
    ['note', '[mjpeg @ 0x1] [error] unable to decode APP fields: Invalid data found when processing input'],
    ['note', '[mjpeg @ 0x1] [warning] EOI missing, emulating'],
    ['note', '[mjpeg @ 0x1] [warning] Mismatching sequence number and coded number of ICC markers'],
    ['note', '[rtsp @ 0x1] [warning] RTP: dropping old packet received too late'],
    ['note', '[rtsp @ 0x1] [error] Undefined type (30)'],
    [
      'chatter',
      '[swscaler @ 0x1] [warning] deprecated pixel format used, make sure you did set range correctly',
    ],
    [
      'chatter',
      '[rawvideo @ 0x1] [error] Application provided invalid, non monotonically increasing dts to muxer in stream 0: 19 >= 18',
    ],
    ['chatter', '[info]     title           : corrupt decoded frame'],
    ['message', '[mov,mp4,m4a,3gp,3g2,mj2 @ 0x1] [error] moov atom not found'],
  ])('R59: is not what is said by a %s: %j', (kind, line) => {
    expect(parseDecoderLine(line).kind).toBe(kind)
  })
})

describe('SuspectTracker', () => {
  function opened(): SuspectTracker {
    const tracker = new SuspectTracker()
    tracker.opened()
    return tracker
  }

  it('trusts what a decoder shows without a key frame where that has shown nothing before', () => {
    const tracker = opened()
    tracker.showsWholeOnly()
    tracker.damage('non-existing PPS 0 referenced', 0)
    expect(tracker.suspect).toBe(true)
    tracker.picture(1_300)
    expect(tracker.suspect).toBe(false)
    tracker.damage('error while decoding MB', 1_400)
    tracker.picture(1_340)
    expect(tracker.suspect).toBe(true)
  })

  it('doubts one picture alone where each stands by itself, however close the next one is', () => {
    const tracker = opened()
    tracker.picturesStandAlone()
    tracker.key(0, 0)
    tracker.damage('overread 8', 30)
    tracker.key(33, 60)
    expect(tracker.suspect).toBe(true)
    tracker.key(66, 61)
    expect(tracker.suspect).toBe(false)
  })

  it('doubts from the first damage to the next key frame', () => {
    const tracker = opened()
    tracker.key(0, 0)
    expect(tracker.suspect).toBe(false)
    tracker.damage('error while decoding MB', 100)
    expect(tracker.suspect).toBe(true)
    tracker.key(1_000, 1_000)
    expect(tracker.suspect).toBe(false)
  })

  it('does not take a key frame that was decoded before the damage for the end of it', () => {
    const tracker = opened()
    tracker.damage('error while decoding MB', 100)
    tracker.picture(160)
    tracker.key(200, 180)
    expect(tracker.suspect).toBe(true)
  })

  it('sees the end of the damage by stream time when all is read at once, and late', () => {
    const tracker = opened()
    tracker.key(0, 0)
    tracker.damage('RTP: missed 6 packets', 2_000)
    for (let ptsMs = 160; ptsMs < 500; ptsMs += 20) tracker.picture(ptsMs)
    tracker.key(500, 2_000)
    expect(tracker.suspect).toBe(false)
  })

  it('counts from the last of several complaints', () => {
    const tracker = opened()
    tracker.damage('error while decoding MB', 0)
    tracker.picture(0)
    tracker.damage('error while decoding MB', 0)
    tracker.key(300, 0)
    expect(tracker.suspect).toBe(true)
  })

  it('goes by the clock where the stream has no time', () => {
    const tracker = opened()
    tracker.damage('error while decoding MB', 0)
    tracker.picture(null)
    tracker.key(null, 249)
    expect(tracker.suspect).toBe(true)
    tracker.key(null, 250)
    expect(tracker.suspect).toBe(false)
  })

  it('forgives what every decoder says that joins between two key frames, and doubts what it shows before the first', () => {
    const tracker = opened()
    for (const text of [
      'non-existing PPS 0 referenced',
      'PPS id out of range: 0',
      'Error parsing NAL unit #0.',
      'Skipping invalid undecodable NALU: 1',
      'Could not find ref with POC 3',
      'Error while decoding stream #0:0: Invalid data found when processing input',
    ])
      expect(tracker.damage(text, 0)).toBe(false)
    tracker.picture(0)
    expect(tracker.suspect).toBe(true)
    tracker.key(40, 2)
    expect(tracker.suspect).toBe(false)
    expect(tracker.damage('Could not find ref with POC 3', 10)).toBe(true)
    expect(tracker.suspect).toBe(true)
  })

  it('does not forgive damage in the first key frame itself', () => {
    const tracker = opened()
    expect(tracker.damage('error while decoding MB 3 4, bytestream -5', 0)).toBe(true)
    tracker.key(0, 0)
    expect(tracker.suspect).toBe(true)
  })

  it('takes what is found while a stream is looked at for what it finds again, but for what got lost', () => {
    const tracker = new SuspectTracker()
    expect(tracker.damage('error while decoding MB 3 4, bytestream -5', 0)).toBe(false)
    expect(tracker.suspect).toBe(false)
    expect(tracker.damage('RTP: missed 6 packets', 0)).toBe(true)
  })

  it('misses nothing where a packet had no picture in it', () => {
    const tracker = opened()
    tracker.key(0, 0)
    tracker.note('no frame!')
    expect(
      tracker.damage('Error while decoding stream #0:0: Invalid data found when processing input', 1),
    ).toBe(false)
    expect(
      tracker.damage('Error while decoding stream #0:0: Invalid data found when processing input', 2),
    ).toBe(true)
  })

  it('is over after a while where every picture is a key frame', () => {
    const tracker = opened()
    tracker.damage('overread 8', 0)
    for (const ptsMs of [40, 80, 280]) {
      tracker.key(ptsMs, 1)
      expect(tracker.suspect).toBe(true)
    }
    tracker.key(290, 1)
    expect(tracker.suspect).toBe(false)
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
