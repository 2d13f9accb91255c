import type { CameraConfig } from '../config/camera.js'
import { unlessAborted } from '../lifecycle/delay.js'
import type { AddressPolicy, Nearness } from '../lifecycle/address-policy.js'
import { connectionFailure, unreachable } from './camera-connection.js'
import type { LoginMemory } from './camera-login.js'
import type { CameraLocation } from './camera-url.js'
import type { Failure } from './failure-reason.js'
import type { DecoderInput } from './ffmpeg-command.js'
import type { HttpContent } from './http-content.js'
import { HttpGate } from './http-gate.js'
import { PictureGate } from './picture-gate.js'
import { RtspGate } from './rtsp-gate.js'

/** What ffmpeg decodes; the other locations are not its business. */
export type DecodedLocation = Extract<CameraLocation, { kind: 'rtsp' | 'http' | 'file' }>

/** An input as ffmpeg may have it, and the gate that it leads through, which the caller closes. */
export type OpenedInput = Readonly<{ input: DecoderInput; gate: Gate | undefined }>

/** What stands between a decoder and its camera. */
export type Gate = RtspGate | HttpGate | PictureGate

export type InputOptions = Readonly<{
  location: DecodedLocation
  camera: Pick<CameraConfig, 'transport' | 'sampleFps'>
  addresses: AddressPolicy
  /** What logins of an earlier decoder have taught about the camera. */
  logins?: LoginMemory
  /** What an HTTP camera is taken for. A snapshot is no matter of a decoder. */
  content: Exclude<HttpContent, 'snapshot'>
  /** Of an RTSP camera: a copy of the newest is kept on its way. */
  keepsKeyFrames: boolean
  /** The HTTP camera is something else. */
  mistaken(content: HttpContent): void
  /** The camera has agreed to send. */
  playing?(): void
  /** The decoder was behind an RTSP camera, and pictures were left out for it. @param detail - for people. */
  behind?(detail: string): void
  signal: AbortSignal
}>

/**
 * The only way of a decoder to what it decodes: its address is one that cameras may be opened at, now, and what it says goes through a
 * gate of ours.
 *
 * @throws what the signal aborts with; what the system has against a port of our own.
 */
export async function openInput(options: InputOptions): Promise<OpenedInput | Failure> {
  const { location, addresses, signal } = options
  if (location.kind === 'file') return { input: location, gate: undefined }
  // Neither a name that nobody knows nor an address that nobody answers holds up a stop.
  const found = await unlessAborted(addresses.resolve(new URL(location.url).hostname), signal)
  if (found.kind !== 'open') return unreachable(found)
  const playing = () => options.playing?.()
  const way = { url: location.url, policy: addresses, nearness: found.nearness, playing }
  if (location.kind === 'http') return openHttp(way, options)
  // What is encrypted stays inside of its connection.
  const transport = location.url.startsWith('rtsps:') ? 'tcp' : options.camera.transport
  const { sampleFps } = options.camera
  const { keepsKeyFrames } = options
  const behind = (detail: string) => options.behind?.(detail)
  const logins = options.logins ?? {}
  const gate = await RtspGate.open({
    ...{ ...way, addresses: found.addresses, transport, sampleFps, keepsKeyFrames, logins, behind, signal },
  }).catch(connectionFailure)
  return 'reason' in gate ? gate : { gate, input: { kind: 'rtsp', url: gate.url, transport } }
}

async function openHttp(
  way: Readonly<{ url: string; policy: AddressPolicy; nearness: Nearness; playing: () => void }>,
  { content, camera, mistaken, logins = {}, signal }: InputOptions,
): Promise<OpenedInput | Failure> {
  if (content === 'pictures') {
    const leastGapMs = 1_000 / camera.sampleFps
    const gate = await PictureGate.open({
      ...{ ...way, leastGapMs, logins, mistaken: () => mistaken('snapshot'), signal },
    })
    if ('reason' in gate) return gate
    return { gate, input: { kind: 'pictures', url: gate.url } }
  }
  const playList = content === 'list'
  const gate = await HttpGate.open({ ...way, playList, logins, mistaken })
  return { gate, input: { kind: 'http', url: gate.url, proxyUrl: gate.proxyUrl, playList } }
}
