import { isIP } from 'node:net'
import { CameraAnswerError, type RtspMessage } from './rtsp-splitter.js'

/** The headers that ffmpeg reads, but for those that lead it elsewhere or ask for a login, which is ours to answer. */
const kept =
  /^(session|range|server|(x-)?notice|content-base|content-type|rtp-info|public|x-accept-dynamic-rate|realchallenge1)$/i

/** Where a camera sends packets from, and to where ffmpeg reports to it, are addresses and ports of the camera's choice. */
export type PacketRules = Readonly<{
  /** Address that the camera was reached at. */
  own: string
  /** @returns a clause when the address may not be sent to. */
  refusal(address: string): string | undefined
}>

/** Ports below are those of other services. */
const leastPacketPort = 1024

/**
 * An answer of a camera as ffmpeg may have it: nothing in it leads ffmpeg to an address that was not checked.
 *
 * @param seq - number of ffmpeg's request.
 * @param base - what relative names in a description are relative to, where the camera does not say.
 * @throws CameraAnswerError when it asks for packets at a place that is not allowed.
 */
export function cleanAnswer(message: RtspMessage, seq: string, base: string, rules: PacketRules): Buffer {
  const isDescription = message.headers.some(
    ([name, value]) => /^content-type$/i.test(name) && /sdp/i.test(value),
  )
  const body = isDescription ? cleanDescription(message.body) : message.body
  const headers = message.headers.flatMap(([name, value]): (readonly [string, string])[] => {
    if (/^transport$/i.test(name)) return [[name, cleanTransport(value, rules)]]
    return kept.test(name) ? [[name, value]] : []
  })
  if (isDescription && !headers.some(([name]) => /^content-base$/i.test(name)))
    headers.push(['Content-Base', base])
  return textOf(message.first, [['CSeq', seq], ...headers], body)
}

/** A message as bytes. No part of it can begin a line of its own. */
export function textOf(
  first: string,
  headers: readonly (readonly [string, string])[],
  body: Buffer = Buffer.alloc(0),
): Buffer {
  const all = body.length === 0 ? headers : [...headers, ['Content-Length', String(body.length)] as const]
  const lines = [first, ...all.map(([name, value]) => `${name}: ${value}`)]
  const head = `${lines.map((line) => line.replace(/[\r\n\0]/g, ' ')).join('\r\n')}\r\n\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), body])
}

/** Only what ffmpeg needs of it. Packets to an address that is not allowed go to the camera itself, which is where they came from. */
function cleanTransport(value: string, rules: PacketRules): string {
  const [kind = '', ...given] = (value.split(',')[0] ?? '').split(';').map((part) => part.trim())
  if (!/^[\w-]+(\/[\w-]+){0,2}$/.test(kind)) throw new CameraAnswerError('the camera names no transport')
  const fields = given.map((part) => part.split('=', 2) as [string, string | undefined])
  const field = (name: string) => fields.find(([key]) => key.toLowerCase() === name)?.[1]
  const ranges = ['interleaved', 'client_port', 'server_port', 'port', 'ttl'].flatMap((name) => {
    const range = /^\d{1,5}(-\d{1,5})?$/.exec(field(name) ?? '')?.[0]
    return range === undefined ? [] : [`${name}=${range}`]
  })
  const serverPort = Number.parseInt(field('server_port') ?? '0', 10) || 0
  if (serverPort > 0 && serverPort < leastPacketPort)
    throw new CameraAnswerError(`the camera asks for packets to port ${serverPort}`)
  if (/tcp$/i.test(kind)) return [kind, 'unicast', ...ranges.slice(0, 1)].join(';')
  if (fields.some(([key]) => key.toLowerCase() === 'multicast'))
    return [kind, 'multicast', ...ranges, `destination=${allowedGroup(field('destination'), rules)}`].join(
      ';',
    )
  const source = field('source') ?? rules.own
  const target = isIP(source) !== 0 && rules.refusal(source) === undefined ? source : rules.own
  return [kind, 'unicast', ...ranges, `source=${target}`].join(';')
}

function allowedGroup(group: string | undefined, rules: PacketRules): string {
  if (group === undefined || isIP(group) === 0) throw new CameraAnswerError('the camera names no group')
  const refusal = rules.refusal(group)
  if (refusal !== undefined)
    throw new CameraAnswerError(`address not allowed: ${refusal} (see cameraNetworks)`)
  return group
}

/** Addresses in a description are never used for a session of our own; without them nobody can be led by them. */
function cleanDescription(body: Buffer): Buffer {
  const lines = body.toString('latin1').split(/\r\n|\r|\n/)
  const clean = lines
    .filter((line) => !/^a=source-filter/i.test(line))
    .map((line) => (/^c=/i.test(line) ? 'c=IN IP4 0.0.0.0' : line))
  return Buffer.from(clean.join('\r\n'), 'latin1')
}
