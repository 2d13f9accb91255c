import { nalTypes } from './nal-units.js'

/** Payload type of the only stream; dynamic range of RFC 3551. */
export const payloadType = 96

/** Fits an Ethernet frame with all headers. */
const maxPayloadBytes = 1_400

const headerBytes = 12
const interleaveBytes = 4

/** Of an RTSP connection that packets are sent inside of. */
export type Channels = readonly [rtp: number, rtcp: number]

/** Numbering of one RTP sender. */
export type RtpSender = { sequence: number; readonly ssrc: number; packets: number; octets: number }

/**
 * Packets of one access unit (RFC 6184, packetization-mode 1), each in the interleaved form of RTSP over TCP: `$`, channel, length,
 * RTP packet. For UDP the first four bytes are left out. The last packet carries the marker bit.
 */
export function packetsOf(
  nals: readonly Buffer[],
  rtpTime: number,
  sender: RtpSender,
  channel: number,
): readonly Buffer[] {
  const payloads = nals.flatMap((nal) => payloadsOf(nal))
  return payloads.map(([head, body], index) => {
    const packet = Buffer.allocUnsafe(interleaveBytes + headerBytes + head.length + body.length)
    packet[0] = 0x24
    packet[1] = channel
    packet.writeUInt16BE(packet.length - interleaveBytes, 2)
    packet[4] = 0x80
    packet[5] = payloadType | (index === payloads.length - 1 ? 0x80 : 0)
    packet.writeUInt16BE(sender.sequence, 6)
    packet.writeUInt32BE(rtpTime >>> 0, 8)
    packet.writeUInt32BE(sender.ssrc, 12)
    packet.set(head, 16)
    packet.set(body, 16 + head.length)
    sender.sequence = (sender.sequence + 1) & 0xffff
    sender.packets += 1
    sender.octets += head.length + body.length
    return packet
  })
}

const none = Buffer.alloc(0)

/** A NAL unit as it is, or cut into FU-A fragments. */
function payloadsOf(nal: Buffer): readonly (readonly [head: Buffer, body: Buffer])[] {
  if (nal.length <= maxPayloadBytes) return [[none, nal]]
  const first = nal[0] ?? 0
  const indicator = (first & 0xe0) | nalTypes.fragment
  const body = nal.subarray(1)
  const fragments: (readonly [Buffer, Buffer])[] = []
  for (let at = 0; at < body.length; at += maxPayloadBytes) {
    const start = at === 0 ? 0x80 : 0
    const end = at + maxPayloadBytes >= body.length ? 0x40 : 0
    const head = Buffer.from([indicator, start | end | nalTypes.of(nal)])
    fragments.push([head, body.subarray(at, at + maxPayloadBytes)])
  }
  return fragments
}

/** Sender report (RFC 3550, 6.4.1) in interleaved form; it ties the stream's clock to wall time and says that the server lives. */
export function senderReport(sender: RtpSender, rtpTime: number, wallMs: number, channel: number): Buffer {
  const packet = Buffer.alloc(interleaveBytes + 28)
  packet[0] = 0x24
  packet[1] = channel
  packet.writeUInt16BE(28, 2)
  packet[4] = 0x80
  packet[5] = 200
  packet.writeUInt16BE(6, 6)
  packet.writeUInt32BE(sender.ssrc, 8)
  packet.writeUInt32BE(Math.floor(wallMs / 1e3) + 2_208_988_800, 12)
  packet.writeUInt32BE(Math.floor(((wallMs % 1e3) / 1e3) * 2 ** 32) >>> 0, 16)
  packet.writeUInt32BE(rtpTime >>> 0, 20)
  packet.writeUInt32BE(sender.packets >>> 0, 24)
  packet.writeUInt32BE(sender.octets >>> 0, 28)
  return packet
}

/** The packet without the four bytes that only TCP needs. */
export function datagramOf(packet: Buffer): Buffer {
  return packet.subarray(interleaveBytes)
}
