import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { type IClientOptions, type IClientPublishOptions, MqttClient } from 'mqtt'
import type { MqttConfig } from '../../config/mqtt.js'
import { formatPath } from '../../config/setting-path.js'
import type { NamedSink } from '../../config/sinks.js'
import type { AddressPolicy } from '../../lifecycle/address-policy.js'
import { ClientTls } from '../../lifecycle/client-tls.js'
import { atMost, unlessAborted } from '../../lifecycle/delay.js'
import type { Log } from '../../lifecycle/log.js'
import { systemLimit } from '../../lifecycle/system-limit.js'
import { tlsFailure } from '../../lifecycle/tls-failure.js'
import { cloudEventAttributes } from '../../messages/cloud-event.js'
import { connectChecked, type FarPlace } from '../checked-socket.js'
import type { RecordLink, RecordLinks, SendFailure } from '../record-link.js'
import type { OutgoingRecord } from '../record-queue.js'
import { RecordsRefusedError } from '../refusal.js'
import { SinkUnavailableError, uncapitalised } from '../sink-unavailable.js'
import { InFlight } from './in-flight.js'
import { adviceFor, codeOf, MqttRefusal, refusalOf } from './mqtt-errors.js'
import { type MqttTopics, statusPayloads } from './mqtt-topics.js'
import type { RetainedTopics } from './retained-topics.js'

/** Of a packet beside topic and payload, at most: properties and lengths. */
const packetOverheadBytes = 512

export type MqttParts = Readonly<{
  mqtt: NamedSink<MqttConfig>
  policy: AddressPolicy
  log: Log
}>

/** What a broker said of itself when it took the connection. */
type BrokerLimits = Readonly<{ receiveMaximum?: number; maximumPacketSize?: number; maximumQoS?: number }>

/** Connects to one broker; each connection writes that the service is up, and leaves a last will that it is not. */
export class MqttLinks implements RecordLinks {
  readonly #place: FarPlace
  readonly #setting: string
  readonly #tls: ClientTls
  readonly #clientId: string
  /** Records that were acknowledged beside one that was not: they need not go again. */
  readonly #acknowledged = new Set<string>()

  constructor(
    readonly parts: MqttParts,
    readonly topics: MqttTopics,
    readonly retained: RetainedTopics,
  ) {
    const { name, path, config } = parts.mqtt
    const { hostname, port, protocol } = new URL(config.url)
    const isTls = /^mqtts:$/i.test(protocol)
    this.#setting = formatPath(path)
    this.#place = {
      sink: name,
      setting: `${this.#setting}.url`,
      host: hostname,
      port: Number(port) || (isTls ? 8883 : 1883),
    }
    this.#tls = new ClientTls(isTls ? (config.tls ?? true) : false, `${this.#setting}.tls`, parts.log)
    this.#clientId = config.clientId ?? `gantry-${randomBytes(6).toString('hex')}`
  }

  /** @throws SinkUnavailableError; what ends the connection. */
  async open(signal: AbortSignal): Promise<RecordLink> {
    const { timeoutMs, maxInFlight, keepAliveSeconds } = this.parts.mqtt.config
    const cut = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    const connection = await this.#connect(this.#options(), cut)
    try {
      const limits = await this.#limitsOf(connection, cut)
      const flight = new InFlight(Math.min(maxInFlight, limits.receiveMaximum ?? maxInFlight))
      const link = new MqttLink(connection, limits, flight, this.topics, this.#acknowledged, this.retained)
      await unlessAborted(link.publishRetained(this.topics.status, statusPayloads.up), cut)
      link.repeat(this.topics.status, statusPayloads.up, keepAliveSeconds * 1_000)
      this.retained.connected((topic, payload) => link.publishRetained(topic, payload))
      void this.retained.flush()
      return link
    } catch (error) {
      connection.close()
      throw error
    }
  }

  /** Logs in and goes again, with an id of its own and without a last will. @throws what {@link failureOf} has words for */
  async probe(signal: AbortSignal): Promise<void> {
    const { will: _, ...options } = this.#options()
    const clientId = `gantry-check-${randomBytes(6).toString('hex')}`
    const connection = await this.#connect({ ...options, clientId }, signal)
    await this.#limitsOf(connection, signal).finally(() => connection.close())
  }

  async #connect(options: IClientOptions, signal: AbortSignal): Promise<BrokerConnection> {
    const socket = await connectChecked(this.#place, this.parts.policy, await this.#tls.options(), signal)
    return new BrokerConnection(socket, options, (code) => adviceFor(code, this.#setting))
  }

  /** What the broker says of itself, once it has taken the connection. */
  async #limitsOf(connection: BrokerConnection, signal: AbortSignal): Promise<BrokerLimits> {
    const limits = await unlessAborted(connection.accepted, signal)
    if (limits.maximumQoS !== 0) return limits
    throw this.#unavailable('the broker acknowledges nothing (QoS 0 alone)', 'Let it take QoS 1.')
  }

  readonly failureOf = (error: unknown): SendFailure => {
    return {
      reason: this.#reasonOf(error),
      refusal: error instanceof MqttRefusal ? error.refusal : undefined,
      closed: error instanceof BrokerEndedError,
      missed: isTimeout(error),
    }
  }

  #reasonOf(error: unknown): string {
    const { timeoutMs } = this.parts.mqtt.config
    if (error instanceof RecordsRefusedError) return error.refusal.detail
    if (error instanceof SinkUnavailableError) return `${error.reason}; ${uncapitalised(error.hint)}`
    if (isTimeout(error)) return `${this.#place.host} does not answer within ${timeoutMs} ms`
    const cause = error instanceof BrokerEndedError ? (error.cause ?? error) : error
    const advice = tlsFailure(cause, `${this.#setting}.tls`, `an mqtt:// URL in ${this.#place.setting}`)
    if (advice !== undefined) return `${advice.reason}; ${advice.fix}`
    const limit = systemLimit(cause)
    if (limit !== undefined) return `${limit.reason}; ${uncapitalised(limit.hint)}`
    const code = codeOf(error)
    const message = error instanceof Error ? error.message : String(error)
    // Brokers that end a client for another with its id do not always say so.
    if (cause instanceof BrokerEndedError && this.parts.mqtt.config.clientId !== undefined)
      return `${message}, and whether another client has our id (${this.#setting}.clientId)`
    return code === undefined ? message : `${message}; ${uncapitalised(adviceFor(code, this.#setting))}`
  }

  #unavailable(reason: string, hint: string): SinkUnavailableError {
    return new SinkUnavailableError(this.#place.sink, reason, hint)
  }

  #options(): IClientOptions {
    const { username, password, keepAliveSeconds, timeoutMs } = this.parts.mqtt.config
    return {
      protocolVersion: 5,
      clientId: this.#clientId,
      clean: true,
      keepalive: keepAliveSeconds,
      connectTimeout: timeoutMs,
      reconnectPeriod: 0,
      resubscribe: false,
      queueQoSZero: false,
      properties: { sessionExpiryInterval: 0 },
      will: { topic: this.topics.status, payload: Buffer.from(statusPayloads.down), qos: 1, retain: true },
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
    }
  }
}

/** The broker was there, and has ended the connection, or does not answer on it any more. */
class BrokerEndedError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'BrokerEndedError'
  }
}

/** One connection of the client library, which is never used again after it has ended. */
class BrokerConnection {
  readonly client: MqttClient
  /** Resolves once the broker has taken the connection, and rejects where it does not. */
  readonly accepted: Promise<BrokerLimits>
  /** Called once, when the connection has ended. */
  readonly onEnd = new Set<(error: Error) => void>()
  #why: Error | undefined
  #isOver = false

  constructor(
    readonly socket: Socket,
    options: IClientOptions,
    advice: (code: number) => string,
  ) {
    socket.on('error', (error) => (this.#why ??= error))
    this.client = new MqttClient(() => socket, options)
    this.client.on('error', (error) => (this.#why ??= error))
    this.client.on('disconnect', ({ reasonCode = 0 }) => {
      this.#why ??= new Error(`the broker ends the connection (reason ${reasonCode}); ${advice(reasonCode)}`)
    })
    this.accepted = new Promise((resolve, reject) => {
      this.client.once('connect', (packet) => resolve(packet.properties ?? {}))
      this.client.once('close', () => reject(this.#end()))
    })
    // It is awaited by who opens, unless that was cut short.
    this.accepted.catch(() => undefined)
    this.client.once('close', () => {
      const error = this.#end()
      for (const tell of this.onEnd) tell(error)
      this.onEnd.clear()
    })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  ended(): Error {
    return this.#end()
  }

  close(): void {
    this.#isOver = true
    // Without a farewell, so that the broker makes the last will known.
    this.client.end(true)
    this.socket.destroy()
  }

  #end(): Error {
    this.#isOver = true
    if (this.#why !== undefined && codeOf(this.#why) !== undefined) return this.#why
    const words = this.#why?.message ?? 'the broker ended the connection without a reason; look at its log'
    return new BrokerEndedError(words, this.#why)
  }
}

class MqttLink implements RecordLink {
  #timer: NodeJS.Timeout | undefined

  constructor(
    readonly connection: BrokerConnection,
    readonly limits: BrokerLimits,
    readonly flight: InFlight,
    readonly topics: MqttTopics,
    readonly acknowledged: Set<string>,
    readonly retained: RetainedTopics,
  ) {}

  /** All at once, in their order; each is taken once the broker has acknowledged it. */
  async send(records: readonly OutgoingRecord[], deadlineMs: number): Promise<void> {
    const due = records.filter(({ id }) => !this.acknowledged.has(id))
    const work = Promise.allSettled(
      due.map(async (record) => {
        await this.#publishRecord(record)
        this.acknowledged.add(record.id)
      }),
    )
    const results = await atMost(deadlineMs, work)
    if (results === undefined)
      throw new DOMException(`no acknowledgement within ${deadlineMs} ms`, 'TimeoutError')
    const failures = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as Error] : [],
    )
    const failure = failures.find((error) => !(error instanceof MqttRefusal)) ?? failures[0]
    if (failure !== undefined) throw failure
    for (const { id } of records) this.acknowledged.delete(id)
  }

  partitionOf({ cameraId }: OutgoingRecord): string {
    return cameraId
  }

  onEnd(ended: (error: Error) => void): void {
    if (this.connection.isOver) ended(this.connection.ended())
    else this.connection.onEnd.add(ended)
  }

  close(): void {
    clearInterval(this.#timer)
    this.retained.disconnected()
    this.connection.close()
  }

  /** As long as the connection stands: the last will of an earlier one, whose end nobody told the broker, may come at any time. */
  repeat(topic: string, payload: string, everyMs: number): void {
    const publish = () => {
      // Where it cannot be written, the connection ends.
      this.publishRetained(topic, payload).catch(() => undefined)
    }
    this.#timer = setInterval(publish, everyMs).unref()
  }

  publishRetained(topic: string, payload: string): Promise<void> {
    return this.#publish(topic, Buffer.from(payload), { retain: true })
  }

  async #publishRecord(record: OutgoingRecord): Promise<void> {
    const topic = this.topics.recordsOf(record.cameraId, record.type)
    // https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/mqtt-protocol-binding.md
    await this.#publish(topic, record.value, {
      properties: {
        contentType: 'application/json',
        payloadFormatIndicator: true,
        userProperties: { ...cloudEventAttributes(record) },
      },
    })
  }

  async #publish(topic: string, payload: Buffer, options: IClientPublishOptions): Promise<void> {
    const { maximumPacketSize = Number.POSITIVE_INFINITY } = this.limits
    if (topic.length + payload.length + packetOverheadBytes > maximumPacketSize)
      throw new MqttRefusal({
        reason: 'PACKET_TOO_LARGE',
        detail: `${payload.length} bytes, and the broker takes packets of ${maximumPacketSize} at most`,
        certain: true,
      })
    await this.flight.run(
      () =>
        new Promise<void>((resolve, reject) => {
          if (this.connection.isOver) {
            reject(this.connection.ended())
            return
          }
          this.connection.onEnd.add(reject)
          this.connection.client.publish(topic, payload, { qos: 1, ...options }, (error) => {
            this.connection.onEnd.delete(reject)
            if (error === undefined || error === null) resolve()
            else reject(refusalOf(error, topic) ?? error)
          })
        }),
    )
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError'
}
