import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ObjectUploads } from '../../src/buckets/object-uploads.js'
import { s3Settings } from '../../src/buckets/s3-settings.js'
import { tempDir } from '../support/temp-dir.js'

it('uploads into a store that knows no conditions, and may not list uploads', async () => {
  const asked: string[] = []
  const server = createServer((request, response) => {
    const isConditional = request.headers['if-none-match'] !== undefined
    asked.push(`${request.method} ${request.url}${isConditional ? ' if there is none' : ''}`)
    request.resume()
    if (isConditional) return response.writeHead(501).end('<Error><Code>NotImplemented</Code></Error>')
    if (request.method === 'GET')
      return response.writeHead(403).end('<Error><Code>AccessDenied</Code></Error>')
    return response.setHeader('etag', '"e"').end('<R><UploadId>7</UploadId></R>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const settings = s3Settings({}, `http://127.0.0.1:${port}`)
  const path = join(tempDir(), 'file')
  writeFileSync(path, 'twelve bytes')
  const uploads = new ObjectUploads(settings, new AbortController().signal, 10)
  expect(await uploads.upload(path, { bucket: 'plant', key: 'out' })).toBe(true)
  expect(asked.filter((each) => !each.endsWith('none'))).toEqual([
    'GET /plant?uploads=&prefix=out',
    'POST /plant/out?uploads=',
    'PUT /plant/out?partNumber=1&uploadId=7',
    'PUT /plant/out?partNumber=2&uploadId=7',
    'POST /plant/out?uploadId=7',
  ])
})
