import type { Cluster } from '../../cluster/cluster.js'
import type { StreamProcess } from '../stream/stream-process.js'

const lookEveryMs = 1_000

/** Tells the stream which other nodes there are, while it has clients. */
export class StreamNodes {
  #timer: NodeJS.Timeout | undefined

  constructor(
    readonly cluster: Cluster,
    readonly stream: Pick<StreamProcess, 'health' | 'tellNodes'>,
  ) {}

  start(): void {
    this.#timer = setInterval(() => void this.#look(), lookEveryMs)
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #look(): Promise<void> {
    if (this.stream.health.clients === 0) return
    const nodes = await this.cluster.group.nodes()
    // None: the brokers do not say. Who was there before is read on.
    if (nodes.length === 0) return
    const others = nodes.filter(({ isThis }) => !isThis)
    this.stream.tellNodes(others.map(({ data: { node, url } }) => ({ node, url })))
  }
}
