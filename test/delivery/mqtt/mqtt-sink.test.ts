import { execFile } from 'node:child_process'
import { chmod } from 'node:fs/promises'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { mqttSchema } from '../../../src/config/mqtt.js'
import type { BoardCamera } from '../../../src/delivery/mqtt/camera-board.js'
import { MqttSink } from '../../../src/delivery/mqtt/mqtt-sink.js'
import { AddressPolicy } from '../../../src/lifecycle/address-policy.js'
import { detectionsMessageSchema } from '../../../src/messages/detections-message.js'
import { homeAssistantFaults } from '../../support/home-assistant.js'
import { type Heard, Mosquitto, mosquittoMissing } from '../../support/mosquitto.js'
import { sinkRig } from '../../support/sinks.js'
import { TcpProxy } from '../../support/tcp-proxy.js'
import { TestAuthority } from '../../support/test-authority.js'
import { unstoredQueue } from '../../support/unstored-queue.js'
import { until } from '../../support/until.js'

const run = promisify(execFile)

function mqttSink(settings: Readonly<Record<string, unknown>>, cameras: BoardCamera[] = []) {
  const config = mqttSchema.parse(settings)
  const queue = unstoredQueue()
  const mqtt = { name: config.name ?? 'mqtt', path: ['sinks', 'mqtt'], config }
  const policy = new AddressPolicy()
  const rig = sinkRig(
    (metrics, log) =>
      new MqttSink({ mqtt, policy, log, version: '1.2.3', cameras: () => cameras }, queue, metrics),
  )
  onTestFinished(() => rig.sink.stop(0))
  return rig
}

async function broker(lines?: readonly string[]): Promise<Mosquitto> {
  const started = await Mosquitto.start(lines)
  onTestFinished(() => started.stop())
  return started
}

const lastOf = (heard: readonly Heard[], topic: string) =>
  heard.findLast((message) => message.topic === topic)
const seqsOf = (heard: readonly Heard[], cameraId: string) =>
  heard
    .filter(({ topic }) => topic === `gantry/cameras/${cameraId}/detections`)
    .map(({ payload }) => (JSON.parse(payload) as { seq: number }).seq)

describe.skipIf(mosquittoMissing() !== undefined)('a broker of MQTT 5', () => {
  it('gets records as CloudEvents with user properties, each camera in its order, and another client reads them', async () => {
    const server = await broker()
    const heard = await server.hear('gantry/cameras/+/detections')
    const reader = run('mosquitto_sub', [
      ...['-h', '127.0.0.1', '-p', String(server.port), '-V', '5', '-t', 'gantry/cameras/b/detections'],
      ...['-C', '150', '-W', '20', '-F', '%P %C %p'],
    ])
    await until('both readers', async () => {
      const { readFile } = await import('node:fs/promises')
      const log = await readFile(join(server.folder, 'mosquitto.log'), 'utf8')
      return log.match(/Received SUBSCRIBE/g)?.length === 2
    })
    const { sink, accept } = mqttSink({ url: server.url })
    sink.start()
    for (let seq = 1; seq <= 300; seq += 1) accept({ seq, cameraId: seq % 2 ? 'a' : 'b' })
    await until('all', () => sink.health.delivered === 300)
    await until('all heard', () => heard.length === 300)
    expect(seqsOf(heard, 'a')).toEqual(Array.from({ length: 150 }, (_, index) => 2 * index + 1))
    const [first] = heard
    expect(first).toMatchObject({
      topic: 'gantry/cameras/a/detections',
      retain: false,
      contentType: 'application/json',
      userProperties: {
        specversion: '1.0',
        id: 'a/e1/1',
        type: 'gantry.detections.v1',
        source: '/cameras/a',
      },
    })
    expect(detectionsMessageSchema.parse(JSON.parse(first?.payload ?? '')).seq).toBe(1)
    const lines = (await reader).stdout.trim().split('\n')
    expect(lines).toHaveLength(150)
    expect(lines[0]).toMatch(
      /specversion:1\.0 id:b\/e1\/2 type:gantry\.detections\.v1 .*application\/json \{"cameraId":"b"/,
    )
  })

  it('R118: is told that the service is up, and tells others when it is gone', async () => {
    const server = await broker()
    const heard = await server.hear('gantry/status')
    const { sink } = mqttSink({ url: server.url })
    sink.start()
    await until('online', () => lastOf(heard, 'gantry/status')?.payload === 'online')
    expect(sink.health).toMatchObject({ state: 'up', reason: 'connected' })
    await sink.stop(1_000)
    await until('offline', () => lastOf(heard, 'gantry/status')?.payload === 'offline')
    const late = await server.hear('gantry/status')
    await until('what is retained', () => late.length > 0)
    expect(late).toEqual([expect.objectContaining({ payload: 'offline', retain: true })])
  })

  it('R151: hears the last will of a connection that is long gone, and is told again that the service is up', async () => {
    const server = await broker()
    const proxy = await TcpProxy.start(server.port)
    onTestFinished(() => proxy.stop())
    const heard = await server.hear('gantry/status')
    const payloads = () => heard.map(({ payload }) => payload)
    // As of a machine that lost its power: nobody tells the broker that the connection has ended.
    const before = mqttSink({ url: `mqtt://127.0.0.1:${proxy.port}`, keepAliveSeconds: 5 })
    before.sink.start()
    await until('online', () => payloads().includes('online'))
    expect(proxy.lose(() => true, true)).toBe(1)
    // It is back before the broker misses it, 1.5 times its keep-alive later.
    const after = mqttSink({ url: server.url, keepAliveSeconds: 5 })
    after.sink.start()
    await until('online again', () => payloads().filter((payload) => payload === 'online').length >= 2)
    await until('the last will of before', () => payloads().includes('offline'), 40_000)
    await until('online in the end', () => payloads().at(-1) === 'online', 40_000)
    const late = await server.hear('gantry/status')
    await until('what is retained', () => late.length > 0)
    expect(late[0]).toMatchObject({ payload: 'online', retain: true })
  }, 120_000)

  it('R118: is away from the start, killed and back: idle connections are made again, and nothing acknowledged is lost', async () => {
    const server = await Mosquitto.prepare()
    onTestFinished(() => server.stop())
    const cameras: BoardCamera[] = [{ id: 'dock-1', state: 'live', reason: '' }]
    const { sink, accept, lines } = mqttSink({ url: server.url }, cameras)
    sink.start()
    for (const seq of [1, 2]) accept({ seq })
    await until('it is down', () => sink.health.state === 'down')
    expect(sink.health.reason).toContain('ECONNREFUSED')
    await server.start()
    await until('what waited', () => sink.health.delivered === 2)
    await server.kill()
    // Nothing is sent meanwhile: the connection itself says so.
    await until('it is seen', () => sink.health.state === 'down')
    await server.start()
    await until('it is up', () => sink.health.state === 'up', 40_000)
    const heard = await server.hear('gantry/#')
    await until('what is retained, again', () => heard.length >= 2)
    expect(lastOf(heard, 'gantry/status')?.payload).toBe('online')
    expect(JSON.parse(lastOf(heard, 'gantry/cameras/dock-1/state')?.payload ?? '{}')).toMatchObject({
      state: 'live',
    })
    accept({ seq: 3 })
    await until('the third', () => seqsOf(heard, 'dock-1').includes(3))
    expect(sink.health).toMatchObject({ delivered: 3, dropped: 0 })
    expect(lines.filter(({ msg }) => msg === 'mqtt up')).toHaveLength(2)
  })

  it('R118: hangs: records wait, are sent again, and come in order', async () => {
    const server = await broker()
    const heard = await server.hear('gantry/cameras/+/detections')
    const { sink, accept } = mqttSink({ url: server.url, timeoutMs: 500, maxInFlight: 4 })
    sink.start()
    await until('it is up', () => sink.health.state === 'up')
    server.freeze()
    for (let seq = 1; seq <= 10; seq += 1) accept({ seq })
    await until('it is down', () => sink.health.state === 'down')
    expect(sink.health.reason).toContain('127.0.0.1 does not answer within 500 ms')
    expect(sink.health.queued).toBe(10)
    server.resume()
    await until('all', () => sink.health.delivered === 10, 40_000)
    await until('all heard', () => seqsOf(heard, 'dock-1').at(-1) === 10)
    const firstOfEach = [...new Set(seqsOf(heard, 'dock-1'))]
    expect(firstOfEach).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('R118: loses acknowledgements: what is not acknowledged is sent again, over a new connection', async () => {
    const server = await broker()
    const proxy = await TcpProxy.start(server.port)
    onTestFinished(() => proxy.stop())
    const heard = await server.hear('gantry/cameras/+/detections')
    const { sink, accept } = mqttSink({ url: `mqtt://127.0.0.1:${proxy.port}` })
    sink.start()
    await until('it is up', () => sink.health.state === 'up')
    proxy.fault = { kind: 'cut_replies', afterBytes: 1 }
    accept({ seq: 1 })
    await until('a cut', () => proxy.cuts > 0)
    proxy.fault = { kind: 'none' }
    await until('it is delivered', () => sink.health.delivered === 1, 40_000)
    const ids = heard.map(({ userProperties }) => userProperties['id'])
    expect(ids.length).toBeGreaterThan(1)
    expect(new Set(ids)).toEqual(new Set(['dock-1/e1/1']))
  })

  it('R119: has no more to acknowledge at once than it takes', async () => {
    const server = await broker(['allow_anonymous true', 'max_inflight_messages 3'])
    const heard = await server.hear('gantry/cameras/+/detections')
    const { sink, accept, lines } = mqttSink({ url: server.url, maxInFlight: 200 })
    sink.start()
    for (let seq = 1; seq <= 500; seq += 1) accept({ seq })
    await until('all', () => sink.health.delivered === 500, 20_000)
    await until('all heard', () => heard.length === 500)
    expect(seqsOf(heard, 'dock-1')).toEqual(Array.from({ length: 500 }, (_, index) => index + 1))
    expect(lines.filter(({ level }) => level === 40)).toEqual([])
  })

  it('R119: has a record that it refuses left out and counted, once each', async () => {
    const server = await broker(['allow_anonymous true', 'max_packet_size 5000'])
    const heard = await server.hear('gantry/cameras/+/detections')
    const { sink, accept, rejected } = mqttSink({ url: server.url })
    sink.start()
    for (let seq = 1; seq <= 6; seq += 1)
      accept({ seq, ...(seq === 3 && { model: { name: 'x'.repeat(6_000), version: '1' } }) })
    await until('all', () => sink.health.delivered === 5 && sink.health.dropped === 1)
    expect(await rejected()).toEqual({ PACKET_TOO_LARGE: 1 })
    await until('all heard', () => heard.length >= 5)
    expect(seqsOf(heard, 'dock-1')).toEqual([1, 2, 4, 5, 6])
  })

  it('S37: takes a login over TLS, and says what is wrong with it without the password', async () => {
    const authority = new TestAuthority()
    onTestFinished(() => authority.remove())
    const { cert, key } = authority.issue('server')
    const prepared = await Mosquitto.prepare()
    const passwords = await prepared.passwordFile('plant', 'p4ssw0rd-of-mqtt')
    for (const file of [passwords, key]) await chmod(file, 0o644)
    await chmod(authority.folder, 0o755)
    const server = await broker([
      `cafile ${authority.ca}`,
      `certfile ${cert}`,
      `keyfile ${key}`,
      'allow_anonymous false',
      `password_file ${passwords}`,
    ])
    onTestFinished(() => prepared.stop())
    const url = `mqtts://127.0.0.1:${server.port}`
    const tls = { ca: authority.ca }
    const right = mqttSink({ url, tls, username: 'plant', password: 'p4ssw0rd-of-mqtt' })
    const wrong = mqttSink({ url, tls, username: 'plant', password: 'wr0ng-p4ss' })
    const untrusting = mqttSink({ url, username: 'plant', password: 'p4ssw0rd-of-mqtt' })
    const plain = mqttSink({ url: server.url, username: 'plant', password: 'p4ssw0rd-of-mqtt' })
    for (const { sink } of [right, wrong, untrusting, plain]) sink.start()
    right.accept()
    await until('the right one', () => right.sink.health.delivered === 1)
    const down = [wrong, untrusting, plain]
    await until('the others', () => down.every(({ sink }) => sink.health.state === 'down'))
    expect(wrong.sink.health.reason).toMatch(
      /Not authorized; correct sinks\.mqtt\.username and sinks\.mqtt\.password/,
    )
    expect(untrusting.sink.health.reason).toContain('set sinks.mqtt.tls.ca')
    const told = JSON.stringify([right, ...down].map(({ lines, sink }) => [lines, sink.health]))
    for (const secret of ['p4ssw0rd-of-mqtt', 'wr0ng-p4ss']) expect(told).not.toContain(secret)
  })

  it('R119: says that another client has its id', async () => {
    const server = await broker()
    const one = mqttSink({ url: server.url, clientId: 'the-same' })
    one.sink.start()
    await until('the first is up', () => one.sink.health.state === 'up')
    const other = mqttSink({ url: server.url, clientId: 'the-same' })
    other.sink.start()
    await until('the first is told', () => one.lines.some(({ msg }) => msg === 'mqtt down, retrying'))
    expect(JSON.stringify(one.lines)).toContain('whether another client has our id (sinks.mqtt.clientId)')
  })
})

describe.skipIf(mosquittoMissing() !== undefined)('what a broker retains', () => {
  it('R119: says how each camera stands and what it sees now, and goes with the camera', async () => {
    const server = await broker()
    const heard = await server.hear('gantry/cameras/+/state')
    const cameras: BoardCamera[] = [
      { id: 'dock-1', state: 'live', reason: '' },
      { id: 'gate', state: 'backoff', reason: 'no answer' },
    ]
    const { sink, accept } = mqttSink({ url: server.url, filter: { minScore: 0.7 } }, cameras)
    sink.start()
    const stateOf = (id: string) =>
      JSON.parse(lastOf(heard, `gantry/cameras/${id}/state`)?.payload || 'null') as unknown
    accept()
    await until('a count', () => JSON.stringify(stateOf('dock-1')).includes('helmet'))
    expect(stateOf('dock-1')).toEqual({ state: 'live', reason: '', counts: { helmet: 1 }, total: 1 })
    expect(stateOf('gate')).toEqual({ state: 'backoff', reason: 'no answer', counts: {}, total: 0 })
    cameras[0] = { id: 'dock-1', state: 'stalled', reason: 'no frame' }
    await until('it stalls', () => JSON.stringify(stateOf('dock-1')).includes('stalled'))
    expect(stateOf('dock-1')).toMatchObject({ counts: {}, total: 0 })
    cameras.splice(1)
    await until('it is gone', () => lastOf(heard, 'gantry/cameras/gate/state')?.payload === '')
    const late = await server.hear('gantry/cameras/+/state')
    await until('what is retained', () => late.length > 0)
    expect(late.map(({ topic }) => topic)).toEqual(['gantry/cameras/dock-1/state'])
  })

  it('tells Home Assistant of the service, of cameras, and of each label that was seen', async () => {
    const server = await broker()
    const heard = await server.hear('homeassistant/#')
    const cameras: BoardCamera[] = [{ id: 'dock.1', state: 'live', reason: '' }]
    const { sink, accept } = mqttSink(
      { url: server.url, homeAssistant: true, topicPrefix: 'plant/7' },
      cameras,
    )
    sink.start()
    const box = { x1: 0, y1: 0, x2: 9, y2: 9 }
    accept({
      cameraId: 'dock.1',
      detections: ['bare "head"', 'helmet', 'helmet'].map((label) => ({ label, score: 0.9, boxPx: box })),
    })
    await until('both labels', () => heard.length === 4)
    const configs = new Map(
      heard.map(({ topic, payload }) => [topic, JSON.parse(payload) as Record<string, unknown>]),
    )
    const faults = heard.flatMap(({ topic, payload }) => homeAssistantFaults('homeassistant', topic, payload))
    expect(faults).toEqual([])
    expect(new Set([...configs.values()].map(({ unique_id }) => unique_id)).size).toBe(4)
    const byName = new Map([...configs.values()].map((config) => [config['name'], config]))
    expect(byName.get('Status')).toMatchObject({ state_topic: 'plant/7/status', payload_on: 'online' })
    expect(byName.get('State')).toMatchObject({
      state_topic: 'plant/7/cameras/dock.1/state',
      value_template: '{{ value_json.state }}',
      device: { name: 'dock.1' },
    })
    const [helmet, bare] = [byName.get('helmet'), byName.get('bare "head"')]
    expect(helmet).toMatchObject({ state_class: 'measurement', availability_mode: 'all' })
    // Home Assistant's templates are Jinja, which Python reads.
    const state = JSON.stringify({ state: 'live', counts: { helmet: 2, 'bare "head"': 1 } })
    const script = join(server.folder, 'render.py')
    const templates = [helmet, bare].map((config) => config?.['value_template'])
    writeFileSync(
      script,
      [
        'import json, re, ast',
        `state = json.loads(${JSON.stringify(state)})`,
        `for template in json.loads(${JSON.stringify(JSON.stringify(templates))}):`,
        `    label = ast.literal_eval(re.fullmatch(r"\\{\\{ value_json\\.counts\\.get\\((.*), 0\\) \\}\\}", template).group(1))`,
        '    print(state["counts"].get(label, 0))',
      ].join('\n'),
    )
    expect((await run('python3', [script])).stdout.trim().split('\n')).toEqual(['2', '1'])
    cameras.splice(0)
    await until('all of the camera is gone', () => heard.filter(({ payload }) => payload === '').length === 3)
  })
})
