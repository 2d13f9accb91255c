import { createServer } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AddressPolicy, type CheckedAddress } from '../../../src/lifecycle/address-policy.js'
import { detectionsMessageSchema } from '../../../src/messages/detections-message.js'
import { startRawServer } from '../../support/http-server.js'
import { TestAuthority } from '../../support/test-authority.js'
import { unstoredQueue } from '../../support/unstored-queue.js'
import { until } from '../../support/until.js'
import { webhookReceiver, webhookSink } from './webhook-fixture.js'

const secret = `whsec_${Buffer.from('a secret of twenty-four!').toString('base64')}`

describe('what a webhook is posted', () => {
  it('is a CloudEvent in binary mode, signed as Standard Webhooks says', async () => {
    const receiver = await webhookReceiver()
    const { sink, accept } = webhookSink({
      url: `${receiver.url}?room=7`,
      secret,
      headers: { Authorization: 'Bearer t0ken' },
    })
    sink.start()
    accept({ seq: 12, capturedAtMs: 1_795_844_420_606 })
    await until('a post', () => sink.health.delivered === 1)
    const [{ method, url, headers, body } = { headers: {} as Record<string, string> }] = receiver.posted
    expect([method, url]).toEqual(['POST', '/hook?room=7'])
    expect(headers).toMatchObject({
      'ce-specversion': '1.0',
      'ce-type': 'gantry.detections.v1',
      'ce-source': '/cameras/dock-1',
      'ce-id': 'dock-1/e1/12',
      'ce-time': new Date(1_795_844_420_606).toISOString(),
      'content-type': 'application/json',
      authorization: 'Bearer t0ken',
      'user-agent': 'gantry/test',
    })
    expect(new Webhook(secret).verify(body ?? '', headers as Record<string, string>)).toMatchObject({
      seq: 12,
    })
    expect(detectionsMessageSchema.parse(JSON.parse(body ?? '')).seq).toBe(12)
    expect(headers['webhook-id']).not.toContain('.')
  })

  it('is a list of CloudEvents where more than one goes at once', async () => {
    const receiver = await webhookReceiver()
    const { sink, accept } = webhookSink({ url: receiver.url, secret, maxBatchRecords: 10, lingerMs: 10_000 })
    sink.start()
    for (let seq = 1; seq <= 20; seq += 1) accept({ seq, cameraId: seq % 2 ? 'a' : 'b' })
    await until('both posts', () => sink.health.delivered === 20)
    expect(receiver.posted).toHaveLength(2)
    for (const { headers, body } of receiver.posted) {
      expect(headers['content-type']).toMatch(/^application\/cloudevents-batch\+json/)
      const events = new Webhook(secret).verify(body, headers as Record<string, string>)
      expect(events).toHaveLength(10)
      expect(events).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            specversion: '1.0',
            type: 'gantry.detections.v1',
            source: '/cameras/a',
            datacontenttype: 'application/json',
            data: expect.objectContaining({ cameraId: 'a' }) as object,
          }),
        ]),
      )
    }
  })

  it('bears a signature of each secret while one is replaced, and any text can be one', async () => {
    const receiver = await webhookReceiver()
    const plain = 'a plain text, ümlauts too'
    const { sink, accept } = webhookSink({ url: receiver.url, secret: [plain, secret] })
    sink.start()
    accept()
    await until('a post', () => sink.health.delivered === 1)
    const [{ headers, body } = { headers: {}, body: '' }] = receiver.posted
    for (const reader of [new Webhook(secret), new Webhook(Buffer.from(plain).toString('base64'))])
      expect(reader.verify(body, headers as Record<string, string>)).toMatchObject({ cameraId: 'dock-1' })
    expect(() => new Webhook('AAAA').verify(body, headers as Record<string, string>)).toThrow()
  })
})

describe('a webhook that does not take records', () => {
  it('R115: is posted the same records again after it failed, with the same ids and a signature of that time', async () => {
    const receiver = await webhookReceiver()
    receiver.answer = (_, response, index) => void response.writeHead(index < 2 ? 503 : 200).end('not yet')
    const { sink, accept, lines } = webhookSink({ url: receiver.url, secret })
    sink.start()
    for (const seq of [1, 2, 3]) accept({ seq })
    await until('all', () => sink.health.delivered === 3)
    expect(receiver.posted.map(({ headers }) => headers['ce-id'])).toEqual([
      'dock-1/e1/1',
      'dock-1/e1/1',
      'dock-1/e1/1',
      'dock-1/e1/2',
      'dock-1/e1/3',
    ])
    expect(new Set(receiver.posted.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
    for (const { body, headers } of receiver.posted)
      new Webhook(secret).verify(body, headers as Record<string, string>)
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'webhook down, retrying',
        reason: expect.stringContaining('answers 503') as string,
      }),
    )
    expect(sink.health).toMatchObject({ state: 'up', dropped: 0, queued: 0 })
  })

  it.each([
    ['seconds', () => '2'],
    ['a date', () => new Date(Date.now() + 3_000).toUTCString()],
  ])('R115: is left alone as long as it asks, in %s', async (_, retryAfter) => {
    const receiver = await webhookReceiver()
    const times: number[] = []
    receiver.answer = (_posted, response, index) => {
      times.push(performance.now())
      response.writeHead(index === 0 ? 429 : 204, index === 0 ? { 'retry-after': retryAfter() } : {}).end()
    }
    const { sink, accept } = webhookSink({ url: receiver.url })
    sink.start()
    accept()
    await until('the second post', () => sink.health.delivered === 1)
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(1_900)
  })

  it('R116: has what it refuses for good left out and counted, and gets the others in order', async () => {
    const receiver = await webhookReceiver()
    receiver.answer = ({ body }, response) => {
      const { seq } = JSON.parse(body) as { seq: number }
      response.writeHead({ 2: 400, 4: 415, 5: 413 }[seq] ?? 200).end('I do not like "2"\u0007\n at all')
    }
    const { sink, accept, rejected, counted, lines } = webhookSink({ url: receiver.url })
    sink.start()
    for (let seq = 1; seq <= 6; seq += 1) accept({ seq })
    await until('all', () => sink.health.delivered + sink.health.dropped === 6)
    expect(await rejected()).toEqual({ HTTP_400: 1, HTTP_413: 1, HTTP_415: 1 })
    expect([await counted('delivered'), await counted('rejected')]).toEqual([3, 3])
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'webhook refuses records for good',
        reason: 'HTTP_400',
        detail: 'answers 400: I do not like "2" at all',
      }),
    )
  })

  it.each([401, 403, 404])('R160: loses none while all are answered %i', async (status) => {
    const receiver = await webhookReceiver()
    let isMended = false
    receiver.answer = (_, response) => void response.writeHead(isMended ? 200 : status).end()
    const { sink, accept, rejected } = webhookSink({ url: receiver.url })
    sink.start()
    for (let seq = 1; seq <= 100; seq += 1) accept({ cameraId: `cam-${seq % 3}`, seq })
    await until('several attempts', () => receiver.posted.length > 3)
    expect(sink.health).toMatchObject({ state: 'down', delivered: 0, dropped: 0 })
    expect(sink.health.reason).toContain(`answers ${status}`)
    isMended = true
    await until('all', () => sink.health.delivered === 100)
    expect(await rejected()).toEqual({})
  })

  it('R116: finds the record that a batch is refused for', async () => {
    const receiver = await webhookReceiver()
    const taken: number[] = []
    receiver.answer = ({ body }, response) => {
      const seqs = (JSON.parse(body) as { data: { seq: number } }[]).map(({ data }) => data.seq)
      const isBad = seqs.includes(7)
      if (!isBad) taken.push(...seqs)
      response.writeHead(isBad ? 422 : 200).end()
    }
    const { sink, accept, rejected } = webhookSink({
      url: receiver.url,
      maxBatchRecords: 16,
      lingerMs: 10_000,
    })
    sink.start()
    for (let seq = 1; seq <= 16; seq += 1) accept({ seq })
    await until('all', () => sink.health.delivered === 15)
    expect(await rejected()).toEqual({ HTTP_422: 1 })
    expect(taken).toEqual(Array.from({ length: 16 }, (_, index) => index + 1).filter((seq) => seq !== 7))
  })

  it('R117: is given up on within timeoutMs where it hangs, at the head or in the middle of a body', async () => {
    const receiver = await webhookReceiver()
    receiver.answer = (_, response, index) => {
      if (index === 0) return
      if (index === 1) response.writeHead(200, { 'content-length': 100 }).write('half')
      else response.writeHead(200).end()
    }
    const { sink, accept, lines } = webhookSink({ url: receiver.url, timeoutMs: 400 })
    sink.start()
    for (const seq of [1, 2]) accept({ seq })
    await until('both', () => sink.health.delivered === 2)
    expect(receiver.posted.map(({ headers }) => headers['ce-id'])).toEqual([
      'dock-1/e1/1',
      'dock-1/e1/1',
      'dock-1/e1/2',
    ])
    expect(lines).toContainEqual(
      expect.objectContaining({ reason: expect.stringContaining('does not answer within 400 ms') as string }),
    )
  })

  it('R117: reads little of an answer that has no end', async () => {
    let written = 0
    const server = await startRawServer((_, socket) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
      const more = () => {
        while (!socket.destroyed && socket.write(chunk)) written += chunk.length
        written += chunk.length
        if (!socket.destroyed) socket.once('drain', more)
      }
      more()
    })
    onTestFinished(() => server.close())
    const { sink, accept } = webhookSink({ url: `${server.base}/hook` })
    sink.start()
    for (const seq of [1, 2, 3]) accept({ seq })
    await until('all', () => sink.health.delivered === 3)
    await until('the end of the connections', () => server.connections().open === 0)
    // What the kernels of both sides took in, for each of the three.
    expect(written).toBeLessThan(60 * 1024 ** 2)
  })

  it('R116: is connected to again after it closes connections, and one record that it always closes over is left out', async () => {
    const receiver = await webhookReceiver()
    receiver.answer = ({ body }, response) => {
      if (body.includes('"seq":2,')) response.socket?.resetAndDestroy()
      else response.writeHead(204).end()
    }
    const { sink, accept, rejected } = webhookSink({ url: receiver.url })
    sink.start()
    for (let seq = 1; seq <= 4; seq += 1) accept({ seq })
    await until('the others', () => sink.health.delivered === 3, 30_000)
    expect(await rejected()).toEqual({ CONNECTION_CLOSED: 1 })
  })

  it('R115: may be away from the start; the newest records wait within their bound', async () => {
    const probe = createServer()
    await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
    const { port } = probe.address() as { port: number }
    await new Promise((resolve) => probe.close(resolve))
    const { sink, accept, counted } = webhookSink(
      { url: `http://127.0.0.1:${port}/` },
      new AddressPolicy(),
      unstoredQueue({ maxRecords: 5, maxBytes: 1024 ** 2 }),
    )
    sink.start()
    for (let seq = 1; seq <= 9; seq += 1) accept({ seq })
    await until('it is down', () => sink.health.state === 'down')
    expect(sink.health.reason).toContain('ECONNREFUSED')
    expect(sink.health.queued).toBeLessThanOrEqual(6)
    expect(await counted('dropped')).toBeGreaterThanOrEqual(3)
  })

  it('R117: does not slow another sink down', async () => {
    const [bad, good] = [await webhookReceiver(), await webhookReceiver()]
    bad.answer = () => undefined
    const one = webhookSink({ url: bad.url, name: 'bad' })
    const other = webhookSink({ url: good.url, name: 'good' })
    for (const { sink } of [one, other]) sink.start()
    for (let seq = 1; seq <= 300; seq += 1) for (const { accept } of [one, other]) accept({ seq })
    await until('all at the other', () => other.sink.health.delivered === 300, 20_000)
    expect(one.sink.health).toMatchObject({ delivered: 0, queued: 300 })
    expect(bad.posted).toHaveLength(1)
  })
})

describe('where a webhook may be', () => {
  it('S35: connects to no address that cameras may not be opened at, whatever the name says later', async () => {
    const receiver = await webhookReceiver()
    const answers: CheckedAddress[][] = [
      [{ address: '169.254.169.254', family: 4 }],
      [{ address: '::ffff:169.254.169.254', family: 6 }],
      [{ address: '127.0.0.1', family: 4 }],
    ]
    let asked = 0
    const policy = new AddressPolicy({ allow: [], deny: [] }, async () => answers[asked++ % 3] ?? [])
    const { sink, accept } = webhookSink({ url: `http://hooks.example:${receiver.port}/hook` }, policy)
    sink.start()
    accept()
    await until('it is down', () => sink.health.state === 'down')
    expect(sink.health.reason).toMatch(
      /hooks\.example may not be connected to: .*a metadata service of a cloud; name another host in sinks\.webhook\.url/,
    )
    await until('six looks', () => asked >= 6, 30_000)
    // The name is looked up before a connection and for it; only where both may be opened one is made.
    expect(receiver.posted).toEqual([])
  })

  it('S35: takes an address for what it is, however it is written', async () => {
    for (const host of ['2852039166', '0xa9fea9fe', '[::ffff:a9fe:a9fe]', '169.254.169.254']) {
      const { sink, accept } = webhookSink({ url: `http://${host}/latest/meta-data` })
      sink.start()
      accept()
      await until('it is down', () => sink.health.state === 'down')
      expect(sink.health.reason).toContain('may not be connected to')
    }
  })

  it('S35: follows no redirect', async () => {
    const [receiver, other] = [await webhookReceiver(), await webhookReceiver()]
    receiver.answer = (_, response) => void response.writeHead(307, { location: other.url }).end()
    const { sink, accept } = webhookSink({ url: receiver.url })
    sink.start()
    accept()
    await until('three tries', () => receiver.posted.length >= 3)
    expect(other.posted).toEqual([])
    expect(sink.health.reason).toContain('answers 307, and redirects are not followed')
  })

  it('trusts who is said to be trusted, shows its own certificate, and says what is wrong otherwise', async () => {
    const authority = new TestAuthority()
    onTestFinished(() => authority.remove())
    const server = authority.issue('server', { names: 'DNS:hooks.example' })
    const client = authority.issue('client')
    const pem = {
      cert: authority.text(server.cert),
      key: authority.text(server.key),
      ca: authority.text(authority.ca),
    }
    const receiver = await webhookReceiver(pem)
    const unknown = webhookSink({ url: receiver.url })
    const elsewhere = webhookSink({ url: receiver.url, tls: { ca: authority.ca, ...client } })
    const right = webhookSink({
      url: receiver.url,
      tls: { ca: authority.ca, ...client, servername: 'hooks.example' },
    })
    for (const { sink, accept } of [unknown, elsewhere, right]) {
      sink.start()
      accept()
    }
    await until('the right one', () => right.sink.health.delivered === 1)
    await until(
      'the others',
      () => unknown.sink.health.state === 'down' && elsewhere.sink.health.state === 'down',
    )
    expect(unknown.sink.health.reason).toContain('set sinks.webhook.tls.ca')
    expect(elsewhere.sink.health.reason).toContain('set sinks.webhook.tls.servername')
  })
})

it('S36: has no secret in its log, health or errors, though the receiver repeats it', async () => {
  const receiver = await webhookReceiver()
  receiver.answer = ({ headers, url }, response, index) =>
    void response
      .writeHead(index % 2 === 0 ? 500 : 400)
      .end(`${String(headers.authorization).slice(7)} ${url} ${secret}`)
  const path = 'services/T00/B00/p4thSecret'
  const url = `http://127.0.0.1:${receiver.port}/${path}?token=qu3rySecret`
  const { sink, accept, lines } = webhookSink({
    url,
    secret,
    headers: { authorization: 'Bearer h3aderSecret' },
  })
  sink.start()
  accept()
  await until('the refusal', () => sink.health.dropped === 1)
  const told = JSON.stringify([lines, sink.health])
  for (const word of [secret, secret.slice(6), 'p4thSecret', 'qu3rySecret', 'h3aderSecret'])
    expect(told).not.toContain(word)
  expect(told).toContain('answers 400')
})
