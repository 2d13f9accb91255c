import {
  Client,
  credentials,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServiceDefinition,
} from '@grpc/grpc-js'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MessageInParts, partsAsTheyAre, wholeMessage } from '../../../src/api/grpc/message-in-parts.js'
import { statusBehindMessage } from '../../../src/api/grpc/unary-call.js'

/** Of a message that must not be copied. */
class Parts extends MessageInParts {
  override joined(): Buffer {
    throw new Error('joined')
  }
}

const bytes = (value: Buffer): Buffer => value
const method = { requestSerialize: bytes, requestDeserialize: bytes, responseDeserialize: bytes }
const methods = {
  One: {
    ...method,
    path: '/test/One',
    requestStream: false,
    responseStream: false,
    responseSerialize: wholeMessage,
  },
  Many: {
    ...method,
    path: '/test/Many',
    requestStream: true,
    responseStream: true,
    responseSerialize: wholeMessage,
  },
} satisfies ServiceDefinition

const large = Buffer.alloc(3_000_000, 'abcdefg')
const message = (): Parts => new Parts([Buffer.from('head'), large, Buffer.alloc(0), Buffer.from('tail')])
const whole = Buffer.concat([Buffer.from('head'), large, Buffer.from('tail')])

const server = new Server({ interceptors: [partsAsTheyAre, statusBehindMessage] })
let client: Client
let port: number
/** Messages of streams that the library told us were sent. */
let sent = 0

beforeAll(async () => {
  server.addService(methods, {
    One: (_: unknown, answer: (error: null, value: unknown) => void) => answer(null, message()),
    Many: (call: ServerDuplexStream<Buffer, unknown>) => {
      call.on('data', (name: Buffer) =>
        call.write(name.toString() === 'large' ? message() : name, () => sent++),
      )
      call.on('end', () => call.end())
    },
  })
  port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  )
  client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
})
afterAll(() => {
  client.close()
  server.forceShutdown()
})

function one(): Promise<Buffer> {
  return new Promise((resolve, reject) =>
    client.makeUnaryRequest<Buffer, Buffer>(
      methods.One.path,
      bytes,
      bytes,
      Buffer.alloc(0),
      (error, value) => (error ? reject(error) : resolve(value ?? Buffer.alloc(0))),
    ),
  )
}

const many = () => client.makeBidiStreamRequest<Buffer, Buffer>(methods.Many.path, bytes, bytes)

it('S12: is sent as one message, and joined by nobody', async () => {
  const answers = await Promise.all([one(), one(), one()])
  expect(answers.map((answer) => answer.equals(whole))).toEqual([true, true, true])
})

it('keeps its place among the messages of a stream', async () => {
  const stream = many()
  const names = ['a', 'large', 'b', 'large', 'large', 'c']
  for (const name of names) stream.write(Buffer.from(name))
  stream.end()
  const answers: string[] = []
  for await (const answer of stream as AsyncIterable<Buffer>)
    answers.push(answer.equals(whole) ? 'large' : answer.toString())
  expect(answers).toEqual(names)
})

it('is told sent only when it is, so that a client that does not read is waited for', async () => {
  sent = 0
  const session = connect(`http://127.0.0.1:${port}`)
  const stream = session.request({
    ':method': 'POST',
    ':path': methods.Many.path,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, 5]), Buffer.from('large')])
  stream.end(Buffer.concat([frame, frame, frame]))
  await once(stream, 'response')
  await one()
  expect(sent).toBe(0)
  let bytesRead = 0
  stream.on('data', (chunk: Buffer) => (bytesRead += chunk.byteLength))
  await once(stream, 'end')
  session.close()
  expect([sent, bytesRead]).toEqual([3, 3 * (5 + whole.byteLength)])
})

it('harms no other call when its client is gone', async () => {
  const stream = many()
  stream.write(Buffer.from('large'))
  stream.once('data', () => stream.cancel())
  for (let i = 0; i < 4; i++) stream.write(Buffer.from('large'))
  await once(stream, 'error')
  expect((await one()).equals(whole)).toBe(true)
})

it('is joined where the library has no stream to give', () => {
  expect(wholeMessage(new MessageInParts([Buffer.from('ab'), Buffer.from('c')])).toString()).toBe('abc')
  expect(partsAsTheyAre({ path: '/' } as never, {} as never)).toMatchObject({ nextCall: {} })
})
