import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bytesOfAnswer, S3Client } from '../../src/buckets/s3-client.js'
import { s3Settings } from '../../src/buckets/s3-settings.js'

/** What a store answers that the one of the tests cannot be brought to: its own words, as Amazon documents them. */
async function answering(listener: RequestListener, silenceMs?: number): Promise<S3Client> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return new S3Client(s3Settings({}, `http://127.0.0.1:${port}`), new AbortController().signal, silenceMs)
}

const error = (code: string, more = '') => `<?xml version="1.0"?><Error><Code>${code}</Code>${more}</Error>`

describe('S3Client', () => {
  it.each<[string, number, string, Record<string, string>, RegExp]>([
    [
      'R183: another region',
      301,
      error('PermanentRedirect'),
      { 'x-amz-bucket-region': 'eu-west-1' },
      /AWS_REGION to eu-west-1/,
    ],
    [
      'R183: a signature for another region',
      400,
      error('AuthorizationHeaderMalformed', '<Region>eu-west-1</Region>'),
      {},
      /AWS_REGION to eu-west-1/,
    ],
    [
      'R183: a clock that is wrong',
      403,
      error('RequestTimeTooSkewed'),
      { date: new Date(Date.now() + 3_600_000).toUTCString() },
      /clock .* 60 min behind/,
    ],
    ['R183: no right to it', 403, error('AccessDenied'), {}, /AWS_ACCESS_KEY_ID/],
    ['R183: no such bucket', 404, error('NoSuchBucket'), {}, /bucket is spelled right/],
    ['R183: an archive', 403, error('InvalidObjectState'), {}, /archive/],
    ['R183: a session that is over', 400, error('ExpiredToken'), {}, /AWS_SESSION_TOKEN/],
  ])('%s is told with bucket, key and what to do', async (_, status, body, headers, hint) => {
    const client = await answering((__, response) => {
      response.sendDate = headers['date'] === undefined
      response.writeHead(status, headers).end(body)
    })
    await expect(client.ask({ bucket: 'plant', key: 'ppe/1/model.onnx' })).rejects.toMatchObject({
      code: 'GANTRY_OBJECT_STORE',
      message: expect.stringMatching(/^s3:\/\/plant\/ppe\/1\/model\.onnx cannot be read: [A-Z]/) as string,
      hint: expect.stringMatching(hint) as string,
      retryable: false,
    })
  })

  it('says of a store that is busy that it may be asked again', async () => {
    const client = await answering((_, response) => response.writeHead(503).end(error('SlowDown')))
    await expect(client.ask({ bucket: 'plant' })).rejects.toMatchObject({ retryable: true })
  })

  it('R184: waits for a store that is silent no longer than it is told, before an answer and within it', async () => {
    const client = await answering((request, response) => {
      if (request.url === '/plant/half') response.writeHead(200, { 'content-length': '8' }).write('half')
    }, 200)
    await expect(client.ask({ bucket: 'plant', key: 'none' })).rejects.toThrow(/nothing came for 0.2 s/)
    const half = await client.ask({ bucket: 'plant', key: 'half' })
    await expect(bytesOfAnswer(half)).rejects.toMatchObject({
      message: 's3://plant/half cannot be reached: nothing came for 0.2 s',
      retryable: true,
    })
  })
})
