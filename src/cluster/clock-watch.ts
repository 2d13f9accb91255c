import { nowMs, wallMs } from '../lifecycle/clock.js'
import type { Log } from '../lifecycle/log.js'
import type { ClusterMetrics } from '../metrics/cluster-metrics.js'
import { askNodes, type OtherNodes } from './ask-nodes.js'
import type { PeerClient } from './peer-client.js'

const everyMs = 30_000
const answersWithinMs = 2_000
/** Apart by more than this, clocks do not follow one time server. */
const mostApartMs = 5_000

export type ClockWatchDeps = Readonly<{
  others: () => Promise<Pick<OtherNodes, 'nodes'>>
  peers: Pick<PeerClient, 'ask'>
  metrics: Pick<ClusterMetrics, 'clockSkew'>
  log: Log
}>

/**
 * How far clocks of nodes are apart. Nothing that decides who has a camera goes by them; but `capturedAt`, spans of coverage and the order of
 * results of several nodes do.
 */
export class ClockWatch {
  /** By node: its clock less that of this one, in milliseconds. */
  #apartMs: ReadonlyMap<string, number> = new Map()
  #timer: NodeJS.Timeout | undefined

  constructor(readonly deps: ClockWatchDeps) {}

  start(): void {
    this.#timer = setInterval(() => void this.look(), everyMs)
    void this.look()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** Asks all nodes. Never rejects. */
  async look(): Promise<void> {
    const { others, metrics, log } = this.deps
    const { nodes } = await others()
    const { answers } = await askNodes(nodes, ({ url }) => this.#apart(url))
    const before = new Set(this.differences)
    this.#apartMs = new Map(answers.map(({ node, value }) => [node, value]))
    metrics.clockSkew.set(Math.max(0, ...answers.map(({ value }) => Math.abs(value))) / 1_000)
    for (const difference of this.differences)
      if (!before.has(difference)) log.warn({ difference }, 'clocks of the cluster differ')
  }

  /** Of which nodes the times do not go with those of this one, for people. */
  get differences(): readonly string[] {
    return [...this.#apartMs].flatMap(([node, ms]) =>
      Math.abs(ms) < mostApartMs
        ? []
        : [
            `${node}: its clock is ${Math.round(Math.abs(ms) / 1_000)} s ${ms > 0 ? 'ahead of' : 'behind'} that of this node, ` +
              'and so are the times that it tells; let both follow one time server',
          ],
    )
  }

  async #apart(url: string): Promise<number> {
    const [askedMs, beganMs] = [wallMs(), nowMs()]
    const question = { method: 'GET', path: '/api/v1/status', withinMs: answersWithinMs } as const
    const { bytes } = await this.deps.peers.ask(url, question)
    const { nowMs: thereMs } = JSON.parse(bytes.toString('utf8')) as Readonly<{ nowMs: number }>
    // It was told about half way.
    return thereMs - (askedMs + (nowMs() - beganMs) / 2)
  }
}
