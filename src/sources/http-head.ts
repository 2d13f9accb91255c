import type { Socket } from 'node:net'

const mostHeadBytes = 32 * 1024

/** First lines of a request or an answer, as they were written; what came behind them is `rest`. */
export type HttpHead = Readonly<{
  first: string
  headers: readonly (readonly [name: string, value: string])[]
  rest: Buffer
}>

/** Reads as leniently as ffmpeg does. @returns undefined when the connection ends first, or the head does not. */
export async function readHttpHead(socket: Socket): Promise<HttpHead | undefined> {
  let bytes = Buffer.alloc(0)
  for (;;) {
    const chunk = await nextChunk(socket)
    if (chunk === undefined) return undefined
    bytes = Buffer.concat([bytes, chunk])
    const end = /\r?\n\r?\n/.exec(bytes.toString('latin1', 0, mostHeadBytes))
    if (end !== null) {
      const [first = '', ...lines] = bytes.toString('latin1', 0, end.index).split(/\r?\n/)
      return { first, headers: lines.flatMap(headerOf), rest: bytes.subarray(end.index + end[0].length) }
    }
    if (bytes.length > mostHeadBytes) return undefined
  }
}

/** What has come, leaving the socket paused; undefined at its end. */
export async function nextChunk(socket: Socket): Promise<Buffer | undefined> {
  for (;;) {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) return chunk
    if (socket.destroyed || socket.readableEnded) return undefined
    await new Promise<void>((resolve) => {
      const go = () => {
        for (const event of ['readable', 'end', 'close']) socket.off(event, go)
        resolve()
      }
      for (const event of ['readable', 'end', 'close']) socket.once(event, go)
    })
  }
}

/** @param wanted - in lower case. */
export function headerIn({ headers }: Pick<HttpHead, 'headers'>, wanted: string): string | undefined {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1]
}

/** All values of a header that may stand there several times. @param wanted - in lower case. */
export function headersIn({ headers }: Pick<HttpHead, 'headers'>, wanted: string): readonly string[] {
  return headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value)
}

export function httpHead(first: string, headers: HttpHead['headers']): string {
  return [first, ...headers.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n')
}

function headerOf(line: string): (readonly [string, string])[] {
  const colon = line.indexOf(':')
  return colon <= 0 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trim()]]
}
