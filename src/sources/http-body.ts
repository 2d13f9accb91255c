import type { Socket } from 'node:net'
import { promisify } from 'node:util'
import { inflate, gunzip } from 'node:zlib'
import { headerIn, nextChunk, type HttpHead } from './http-head.js'

/** A list of a day's pieces has some hundred thousand bytes. */
const mostBodyBytes = 4 * 1024 * 1024

const unpackers = { gzip: promisify(gunzip), deflate: promisify(inflate) } as const

/** The whole body behind a head. @returns undefined when it is longer than any play list, or garbled. */
export async function readHttpBody(socket: Socket, head: HttpHead): Promise<Buffer | undefined> {
  const isChunked = /chunked/i.test(headerIn(head, 'transfer-encoding') ?? '')
  const length = isChunked ? Number.NaN : Number(headerIn(head, 'content-length') ?? Number.NaN)
  const chunks = [head.rest]
  let bytes = head.rest.length
  // A number that is none is never reached.
  while (!(bytes >= length)) {
    if (isChunked && /(^|\r?\n)0+\r?\n\r?\n$/.test(tailOf(chunks))) break
    const chunk = await nextChunk(socket)
    if (chunk === undefined) break
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > mostBodyBytes) return undefined
  }
  const raw = Buffer.concat(chunks)
  const body = isChunked ? unchunked(raw) : raw.subarray(0, Number.isNaN(length) ? raw.length : length)
  const packing = headerIn(head, 'content-encoding')?.toLowerCase()
  if (packing !== 'gzip' && packing !== 'deflate') return body
  return unpackers[packing](body, { maxOutputLength: mostBodyBytes }).catch(() => undefined)
}

function tailOf(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks.slice(-8)).subarray(-8).toString('latin1')
}

function unchunked(raw: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; ;) {
    const lineEnd = raw.indexOf('\n', at)
    const length = lineEnd < 0 ? 0 : Number.parseInt(raw.toString('latin1', at, lineEnd), 16)
    if (!(length > 0)) return Buffer.concat(parts)
    parts.push(raw.subarray(lineEnd + 1, lineEnd + 1 + length))
    at = lineEnd + 1 + length
    at += raw[at] === 0x0d ? 2 : 1
  }
}
