import { spawn, type ChildProcess } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { playerArguments } from '../ffmpeg-command.js'
import { withDeathSignal } from '../../lifecycle/death-signal.js'

/** 0 carries pictures (RTP), 1 the reports about them (RTCP). */
export type Channel = 0 | 1

async function loopbackSocket(onPacket: (packet: Buffer) => void): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 })
  socket.on('message', onPacket)
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket
}

/** Plays one clip for one client: ffmpeg packs it into RTP, in real time, and the packets come here. */
export class ClipPlayer {
  #child: ChildProcess | undefined
  readonly #sockets: Socket[] = []
  #stopped = false

  constructor(
    readonly clip: string,
    readonly loop: boolean,
    readonly onPacket: (channel: Channel, packet: Buffer) => void,
    readonly onEnd: () => void,
  ) {}

  async start(): Promise<void> {
    const rtp = await loopbackSocket((packet) => this.onPacket(0, packet))
    const rtcp = await loopbackSocket((packet) => this.onPacket(1, packet))
    this.#sockets.push(rtp, rtcp)
    if (this.#stopped) return this.#closeSockets()
    const ports = { rtp: rtp.address().port, rtcp: rtcp.address().port }
    const args = playerArguments(this.clip, ports, { loop: this.loop })
    const child = spawn(...withDeathSignal('ffmpeg', args), { stdio: 'ignore' })
    this.#child = child
    child.on('error', () => this.#ended())
    child.on('exit', () => this.#ended())
  }

  /** Stops the clock of the clip, as a frozen camera would; `thaw` lets it go on. */
  freeze(): void {
    this.#child?.kill('SIGSTOP')
  }

  thaw(): void {
    this.#child?.kill('SIGCONT')
  }

  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#child?.kill('SIGKILL')
    this.#closeSockets()
  }

  #ended(): void {
    if (this.#stopped) return
    this.stop()
    this.onEnd()
  }

  #closeSockets(): void {
    for (const socket of this.#sockets.splice(0)) socket.close()
  }
}

/** The session description of a clip, as ffmpeg writes it, with one track called `track0`. @throws when ffmpeg cannot read the clip. */
export async function describeClip(clip: string): Promise<string> {
  // Port 9 is the discard service: nobody reads the few packets that come along.
  const args = playerArguments(clip, { rtp: 9, rtcp: 9 }, { loop: false, durationS: 0.04 })
  const child = spawn('ffmpeg', args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let sdp = ''
  let complaint = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (sdp += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
  await once(child, 'close')
  if (!sdp.includes('m=video')) throw new Error(`ffmpeg cannot play ${clip}: ${complaint.trim()}`)
  const lines = sdp
    .split(/\r?\n/)
    .filter((line) => line !== '' && !line.startsWith('SDP:'))
    .map((line) => line.replace(/^m=video \d+/, 'm=video 0').replace(/^c=IN IP4 .*/, 'c=IN IP4 0.0.0.0'))
  return [...lines, 'a=control:track0', ''].join('\r\n')
}
