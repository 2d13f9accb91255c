import type { CameraConfig } from '../config/camera.js'
import { unlessAborted } from '../lifecycle/delay.js'
import type { AddressPolicy } from './address-policy.js'
import { connectionFailure, unreachable } from './camera-connection.js'
import type { LoginMemory } from './camera-login.js'
import type { CameraLocation } from './camera-url.js'
import type { Failure } from './failure-reason.js'
import type { DecoderInput } from './ffmpeg-command.js'
import { HttpGate } from './http-gate.js'
import { RtspGate } from './rtsp-gate.js'

/** What ffmpeg decodes; the other locations are not its business. */
export type DecodedLocation = Extract<CameraLocation, { kind: 'rtsp' | 'http' | 'file' }>

/** An input as ffmpeg may have it, and the gate that it leads through, which the caller closes. */
export type OpenedInput = Readonly<{ input: DecoderInput; gate: RtspGate | HttpGate | undefined }>

export type InputOptions = Readonly<{
  location: DecodedLocation
  transport: CameraConfig['transport']
  addresses: AddressPolicy
  /** Of an HTTP camera; by the end of its URL where it is absent. */
  playList?: boolean | undefined
  /** The HTTP camera is a play list, or is none: the other of what it was taken for. */
  mistaken(isPlayList: boolean): void
  /** What logins of an earlier decoder have taught about the camera. */
  logins?: LoginMemory
  /** An RTSP camera has agreed to send: called once. */
  playing?(): void
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
  const way = { url: location.url, policy: addresses, nearness: found.nearness }
  if (location.kind === 'http') {
    const playList = options.playList ?? /\.m3u8?$/i.test(new URL(location.url).pathname)
    const mistaken = () => options.mistaken(!playList)
    const gate = await HttpGate.open({ ...way, playList, logins: options.logins ?? {}, mistaken })
    return { gate, input: { kind: 'http', url: gate.url, proxyUrl: gate.proxyUrl, playList } }
  }
  // What is encrypted stays inside of its connection.
  const transport = location.url.startsWith('rtsps:') ? 'tcp' : options.transport
  const playing = () => options.playing?.()
  const logins = options.logins ?? {}
  const gate = await RtspGate.open({
    ...{ ...way, addresses: found.addresses, transport, logins, signal, playing },
  }).catch(connectionFailure)
  return 'reason' in gate ? gate : { gate, input: { kind: 'rtsp', url: gate.url, transport } }
}
