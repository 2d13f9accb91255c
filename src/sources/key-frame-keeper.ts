import type { CameraConfig } from '../config/camera.js'
import { wallMs } from '../lifecycle/clock.js'
import { beginsKeyFrame, holdsKeyPicture, rtpHeadBytes, videoTypes, type RtpVideo } from './rtp-packet.js'

/** Largest key frame that is kept; those of 4K cameras have about 1 MB. */
const mostBytes = 4 * 1024 ** 2
/** What is held of one camera at worst: the newest key frame, and the one that has begun. */
export const mostKeyFrameBytes = 2 * mostBytes
/** Where each picture is a key frame (MJPEG), not each of them is copied for a question that comes once in a while. */
const leastApartMs = 1_000
/** In the byte that says what a packet carries: it is the last one of a picture. */
const marked = 0x80

/** The packets of one key frame, each with its head of four bytes (`$`, channel, length), and what the camera said of its stream. */
export type KeyFramePackets = Readonly<{
  sdp: string
  packets: readonly Buffer[]
  /** Wall time. */ atMs: number
}>

/** Whether key frames of a camera are kept: those that come by way of us, of a stream that snapshots are taken of. */
export function keepsKeyFrames({
  url,
  analyseUrl,
  transport,
  videoTrack,
}: Pick<CameraConfig, 'url' | 'analyseUrl' | 'transport' | 'videoTrack'>): boolean {
  // What is encrypted stays inside of its connection.
  const comesByUs = /^rtsps:/i.test(url) || (/^rtsp:/i.test(url) && transport === 'tcp')
  return comesByUs && analyseUrl === undefined && videoTrack === 1
}

type Kept = { ticks: number; video: RtpVideo; packets: Buffer[]; bytes: number; nextSeq: number }

/**
 * Keeps a copy of the newest key frame of an RTSP stream on its way to the decoder, which has it at a smaller size only: with it a picture can
 * be had at the camera's own resolution, without a second session at the camera. Packets of key frames alone are copied, of one a second
 * at most: the newest and the one that has begun are held.
 */
export class KeyFrameKeeper {
  #sdp = ''
  #types: ReadonlyMap<number, RtpVideo> = new Map()
  #begun: Kept | undefined
  #last: KeyFramePackets | undefined
  /** The packet that has begun, and how much of it is to come with the next bytes. */
  #open: Readonly<{ packet: Buffer; isLast: boolean }> | undefined
  #missing = 0

  /** @param wall - the clock of the machine, ms. */
  constructor(readonly wall: () => number = wallMs) {}

  /** The newest whole key frame; undefined where none has come. */
  get last(): KeyFramePackets | undefined {
    return this.#last
  }

  /** The camera has described what it sends. @param sdp - RFC 4566. */
  described(sdp: string): void {
    this.#sdp = sdp
    // Of several videos nobody knows here which one is shown.
    this.#types = sdp.split(/^m=video/m).length === 2 ? videoTypes(sdp) : new Map()
  }

  /** More bytes of the camera have come, before they are taken apart. They begin with what is missing of the packet before. */
  received(bytes: Buffer): void {
    if (this.#missing === 0 || this.#open === undefined) return
    const { packet } = this.#open
    const taken = Math.min(this.#missing, bytes.length)
    bytes.copy(packet, packet.length - this.#missing, 0, taken)
    this.#missing -= taken
    if (this.#missing === 0) this.#whole()
  }

  /** A packet of the stream begins, and is handed on. @param at - where, in `bytes`, with `$`. */
  packet(bytes: Buffer, at: number): void {
    const video = this.#types.get((bytes[at + 5] ?? 0) & 0x7f)
    if (video === undefined) return
    if (this.#begun === undefined && !this.#isDue(bytes, at, video)) return
    const ticks = bytes.readUInt32BE(at + 8)
    const seq = bytes.readUInt16BE(at + 6)
    if (this.#begun !== undefined && this.#begun.ticks !== ticks) {
      this.#begun = undefined
      if (!this.#isDue(bytes, at, video)) return
    }
    this.#begun ??= { ticks, video, packets: [], bytes: 0, nextSeq: seq }
    const length = 4 + bytes.readUInt16BE(at + 2)
    const isNext = seq === this.#begun.nextSeq && length >= rtpHeadBytes
    this.#begun.bytes += length
    // What lacks a part would be shown with a hole in it.
    if (!isNext || this.#begun.bytes > mostBytes) return this.leftOut()
    this.#begun.nextSeq = (seq + 1) & 0xffff
    const packet = Buffer.allocUnsafe(length)
    const here = bytes.copy(packet, 0, at, at + length)
    this.#missing = length - here
    this.#open = { packet, isLast: (bytes[at + 5] ?? 0) >= marked }
    if (this.#missing === 0) this.#whole()
  }

  /** Packets are not handed on: what has begun is not whole. */
  leftOut(): void {
    this.#begun = undefined
    this.#open = undefined
    this.#missing = 0
  }

  /** A key frame begins, and the one that is kept has been for a while. A clock that was set back keeps none off. */
  #isDue(bytes: Buffer, at: number, video: RtpVideo): boolean {
    if (!beginsKeyFrame(bytes, at, video)) return false
    return this.#last === undefined || Math.abs(this.wall() - this.#last.atMs) >= leastApartMs
  }

  #whole(): void {
    const [open, begun] = [this.#open, this.#begun]
    this.#open = undefined
    if (open === undefined || begun === undefined) return
    begun.packets.push(open.packet)
    if (!open.isLast) return
    this.#begun = undefined
    // Parameter sets also stand before pictures that are refreshed piece by piece.
    if (begun.packets.some((packet) => holdsKeyPicture(packet, begun.video)))
      this.#last = { sdp: this.#sdp, packets: begun.packets, atMs: this.wall() }
  }
}
