import { status, type sendUnaryData, type ServerUnaryCall, type ServerWritableStream } from '@grpc/grpc-js'
import type { ModelServer } from '../../serving/model-server.js'
import type { Message } from '../../kserve/grpc-schema.js'

/** How often `Watch` looks. */
const watchMs = 500

/** Services whose health may be asked by name; the empty name is the server. */
const services = ['', 'inference.GRPCInferenceService']

/** `grpc.health.v1.Health` over the readiness of the model server. */
export class HealthMethods {
  readonly #watching = new Set<Readonly<{ tell: () => void; stop: () => void }>>()

  constructor(readonly server: ModelServer) {}

  readonly Check = (call: ServerUnaryCall<Message, Message>, answer: sendUnaryData<Message>): void => {
    if (!services.includes(serviceOf(call.request)))
      return answer({ code: status.NOT_FOUND, details: 'unknown service' })
    const tell = (): void => answer(null, this.#health(call.request))
    const loading = this.server.ask('')
    if (loading === undefined) tell()
    else void loading.then(tell, tell)
  }

  /** Tells the health now and whenever it changes, until the client has heard enough. */
  readonly Watch = (call: ServerWritableStream<Message, Message>): void => {
    let told = ''
    const tell = (): void => {
      const now = this.#health(call.request)
      if (now['status'] === told) return
      told = String(now['status'])
      call.write(now)
    }
    const timer = setInterval(tell, watchMs)
    const stop = (): void => {
      clearInterval(timer)
      this.#watching.delete(watch)
      call.end()
    }
    const watch = { tell, stop }
    this.#watching.add(watch)
    call.on('cancelled', stop)
    call.on('error', stop)
    void this.server.ask('')?.catch(() => undefined)
    tell()
  }

  /** Those that watch are told before it is their time. */
  changed(): void {
    for (const { tell } of this.#watching) tell()
  }

  /** Ends every watch. */
  stop(): void {
    for (const { stop } of this.#watching) stop()
  }

  #health(request: Message): Message {
    if (!services.includes(serviceOf(request))) return { status: 'SERVICE_UNKNOWN' }
    return { status: this.server.ready() ? 'SERVING' : 'NOT_SERVING' }
  }
}

function serviceOf(request: Message): string {
  return typeof request['service'] === 'string' ? request['service'] : ''
}
