import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { nowMs } from '../../../src/lifecycle/clock.js'
import { loadClip } from '../../../src/tools/rtsp-server/clip.js'
import { ClipPlayer, type PacketSink } from '../../../src/tools/rtsp-server/clip-player.js'
import { LoopingRtspServer } from '../../../src/tools/rtsp-server/looping-rtsp-server.js'
import { nalTypes } from '../../../src/tools/rtsp-server/nal-units.js'
import { ServedStream } from '../../../src/tools/rtsp-server/served-stream.js'
import { RtspClient } from '../../support/rtsp-client.js'
import { until } from '../../support/until.js'
import { makeClip, tempFolder } from '../../support/video-clips.js'

describe("the demo's RTSP server", () => {
  const server = new LoopingRtspServer()
  let folder: Awaited<ReturnType<typeof tempFolder>>
  let heavy: ServedStream
  let smallClip: string
  const clients: RtspClient[] = []

  beforeAll(async () => {
    folder = await tempFolder()
    smallClip = await makeClip(folder.file('small.mp4'))
    // Some 5 MB a second: buffers of the system are full soon.
    const noise = 'nullsrc=s=320x240:r=25:d=2,geq=random(1)*255:128:128'
    const heavyClip = await makeClip(folder.file('heavy.mp4'), {
      source: noise,
      codec: [
        '-c:v',
        'libx264',
        '-preset',
        'ultrafast',
        '-qp',
        '4',
        '-g',
        '10',
        '-bf',
        '0',
        '-pix_fmt',
        'yuv420p',
      ],
    })
    await server.start()
    await server.addStream('/small', smallClip)
    heavy = await server.addStream('/heavy', heavyClip)
  })
  afterEach(() => {
    for (const client of clients.splice(0)) client.close()
  })
  afterAll(async () => {
    await server.stop()
    await folder.remove()
  })

  async function client(path: string): Promise<RtspClient> {
    const opened = await RtspClient.open(server.url(path))
    clients.push(opened)
    return opened
  }

  it('R62: answers requests in the order that they came in, though some answers take a while', async () => {
    const some = await client('/small')
    const seqs = [
      some.ask('OPTIONS'),
      some.ask('SETUP', { Transport: 'RTP/AVP;unicast;client_port=50000-50001' }),
      some.ask('PLAY'),
      ...Array.from({ length: 12 }, () => some.ask('GET_PARAMETER')),
      some.ask('TEARDOWN'),
    ]
    await some.until(() => some.answers.length === seqs.length)
    expect(some.answers.map(({ seq }) => seq)).toEqual(seqs)
    expect(some.answers.map(({ status }) => status)).toEqual(seqs.map(() => 200))
  })

  it('R62: leaves out whole pictures of a client that does not read, up to a key frame, and no packet is missed', async () => {
    const before = heavy.skipped
    const slow = await client('/heavy')
    await slow.play()
    await slow.until(() => slow.packetsOn(0).length > 50)
    slow.socket.pause()
    await until('pictures left out', () => heavy.skipped - before > 25, 20_000)
    const asked = Array.from({ length: 5 }, () => slow.ask('GET_PARAMETER'))
    slow.socket.resume()
    await slow.until(() => slow.answers.length === 7)
    const keys: readonly number[] = [nalTypes.idr, nalTypes.sps]
    const isKey = ([first = 0, second = 0]: Buffer) =>
      keys.includes(first & 31) || (second >= 0x80 && (second & 31) === nalTypes.idr)
    const gaps = () => {
      const all = slow.packetsOn(0)
      return all.filter(({ rtpTime }, n) => n > 0 && rtpTime - (all[n - 1]?.rtpTime ?? 0) > 90 * 500)
    }
    await slow.until(() => gaps().length > 0)
    const packets = slow.packetsOn(0)
    expect(slow.answers.map(({ seq }) => seq)).toEqual([1, 2, ...asked])
    const missed = packets.filter(
      ({ sequence }, n) => n > 0 && sequence !== (((packets[n - 1]?.sequence ?? 0) + 1) & 0xffff),
    )
    expect(missed).toEqual([])
    // Each picture is whole: its last packet is marked before the next one begins.
    const cut = packets.filter(
      ({ rtpTime }, n) => n > 0 && rtpTime !== packets[n - 1]?.rtpTime && packets[n - 1]?.isLast !== true,
    )
    expect(cut).toEqual([])
    expect(gaps().every(({ payload }) => isKey(payload))).toBe(true)
  })

  it('R62: what is kept for a client that does not read is bounded, whatever it asks', async () => {
    const deaf = await client('/heavy')
    await deaf.play()
    deaf.socket.pause()
    const before = heavy.skipped
    await until('pictures left out', () => heavy.skipped - before > 50, 20_000)
    expect(Math.max(...server.unreadBytes)).toBeLessThan(2 * 1024 * 1024)
    const closed = new Promise((resolve) => deaf.socket.once('close', resolve))
    for (let n = 0; n < 100; n += 1) deaf.ask('DESCRIBE')
    await until('the end of the session', () => server.sessions('/heavy') === 0)
    deaf.socket.resume()
    await closed
  })

  it('R62: a decoder that was stopped for a while sees no damage and no strange answer', async () => {
    const args = ['-hide_banner', '-nostats', '-nostdin', '-loglevel', 'level+info', '-rtsp_transport', 'tcp']
    const graph = ['-an', '-fps_mode', 'passthrough', '-vf', "select='print(t,24);1'", '-f', 'null', '-']
    const decoder = spawn('ffmpeg', [...args, '-i', server.url('/heavy'), ...graph], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    decoder.stderr.on('data', (bytes: Buffer) => (said += bytes.toString()))
    const times = () => [...said.matchAll(/^\[warning\] (\d+\.\d+)/gm)].map(([, seconds]) => Number(seconds))
    try {
      await until('pictures', () => times().length > 10, 20_000)
      const [before, had] = [heavy.skipped, times().length]
      decoder.kill('SIGSTOP')
      await until('pictures left out', () => heavy.skipped - before > 25, 30_000)
      decoder.kill('SIGCONT')
      const jump = () => times().some((seconds, n, all) => n > had && seconds - (all[n - 1] ?? 0) > 0.5)
      await until('pictures behind those left out', jump, 20_000)
    } finally {
      decoder.kill('SIGCONT')
      decoder.kill('SIGTERM')
      await once(decoder, 'close')
    }
    expect(
      said
        .split('\n')
        .filter((line) => /missed|CSeq|cseq|concealing|corrupt|\] \[error\] (?!Immediate)/.test(line)),
    ).toEqual([])
  })

  it('R62: goes on from where it was when this process was held up, and makes up for nothing in a burst', async () => {
    const sentMs: number[] = []
    const sink: PacketSink = {
      channels: [0, 1],
      takes: () => true,
      rtp: () => sentMs.push(nowMs()),
      rtcp: () => undefined,
    }
    const player = new ClipPlayer(new ServedStream(await loadClip(smallClip), {}), sink)
    player.start()
    await until('pictures', () => sentMs.length > 5)
    const heldMs = nowMs() + 1_500
    while (nowMs() < heldMs);
    const had = sentMs.length
    await until('pictures after it', () => sentMs.length > had + 10)
    player.stop()
    const after = sentMs.slice(had)
    // 25 a second: in half a second some 13, and not the 37 that are late.
    expect(after.filter((atMs) => atMs - heldMs < 200).length).toBeLessThan(10)
  })

  it('R62: a client gets the channels that it asked for, and each picture once, though it plays twice', async () => {
    const some = await client('/small')
    await some.play('6-7')
    some.ask('PLAY')
    await some.until(() => some.packetsOn(6).length > 30)
    const times = some
      .packetsOn(6)
      .filter(({ isLast }) => isLast)
      .map(({ rtpTime }) => rtpTime)
    expect(new Set(times).size).toBe(times.length)
    expect(some.answers.at(-1)?.status).toBe(200)
    expect(some.packetsOn(0)).toEqual([])
    await some.until(() => some.packetsOn(7).length > 0)
  })

  it('R62: a session ends by TEARDOWN, and another one begins on the same connection', async () => {
    const some = await client('/small')
    await some.play()
    expect(server.sessions('/small')).toBe(1)
    const seq = some.ask('TEARDOWN')
    await some.until(() => some.answers.at(-1)?.seq === seq)
    expect(server.sessions('/small')).toBe(0)
    const had = some.packetsOn(0).length
    some.ask('SETUP', { Transport: 'RTP/AVP/TCP;unicast;interleaved=0-1' })
    some.ask('PLAY')
    await some.until(() => some.packetsOn(0).length > had + 5)
    expect(server.sessions('/small')).toBe(1)
  })

  it('R62: many clients get the clip from its beginning each, and those that go leave the others alone', async () => {
    const many = await Promise.all(Array.from({ length: 24 }, () => client('/small')))
    await Promise.all(many.map((each) => each.play()))
    for (const each of many.slice(0, 12)) each.close()
    const rest = many.slice(12)
    await Promise.all(rest.map((each) => each.until(() => each.packetsOn(0).length > 40)))
    for (const each of rest) {
      const [first, ...more] = each.packetsOn(0)
      const picture = [first, ...more.filter(({ rtpTime }) => rtpTime === first?.rtpTime)]
      expect(picture.map((packet) => (packet?.payload[0] ?? 0) & 31)).toContain(nalTypes.sps)
    }
    await until('the others to be gone', () => server.sessions('/small') === 12)
  })

  it('R62: a client that is not heard of any more is let go', async () => {
    const brief = new LoopingRtspServer(1)
    await brief.start()
    try {
      await brief.addStream('/small', smallClip)
      const silent = await RtspClient.open(brief.url('/small'))
      clients.push(silent)
      await silent.play()
      const closed = once(silent.socket, 'close', { signal: AbortSignal.timeout(10_000) })
      expect(brief.sessions('/small')).toBe(1)
      await closed
      await until('its session to end', () => brief.sessions('/small') === 0)
    } finally {
      await brief.stop()
    }
  })
})
