import { request, type IncomingHttpHeaders } from 'node:http'

export type Reply = Readonly<{
  status: number
  headers: IncomingHttpHeaders
  bytes: Buffer
  text: string
  json: unknown
}>

export type Ask = Readonly<{
  method?: string
  headers?: Readonly<Record<string, string | string[]>>
  /** Objects go as JSON, with its content type unless the headers name one. */
  body?: unknown
}>

/** One request with any headers and any path whatever; `fetch` would mend both. */
export function ask(url: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Reply> {
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)
  const payload = isJson ? JSON.stringify(body) : body
  const [, host, port, path] = /^http:\/\/([^/:]+):(\d+)(.*)$/.exec(url) ?? []
  if (host === undefined) throw new TypeError(`not a URL with a port: ${url}`)
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host,
        port,
        path: path === '' ? '/' : path,
        method,
        headers: { ...(isJson ? { 'content-type': 'application/json' } : {}), ...headers },
        agent: false,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          const bytes = Buffer.concat(chunks)
          const text = bytes.toString('utf8')
          const json: unknown =
            /json/.test(response.headers['content-type'] ?? '') && text !== '' ? JSON.parse(text) : undefined
          resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes, text, json })
        })
      },
    )
    sent.on('error', reject)
    sent.end(payload)
  })
}
