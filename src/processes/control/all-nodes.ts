import { CoverageTooLongError } from '../../api/errors.js'
import { timesInCoverageBody } from '../../api/coverage-body.js'
import type { CoverageQuestion, CoverageView, HeadroomQuestion, HeadroomView } from '../../api/gantry.js'
import type { RecentPage, RecentQuery } from '../../cache/result-cache.js'
import { askNodes, missingNodes, type NodesAnswers, type OtherNodes } from '../../cluster/ask-nodes.js'
import type { ClockWatch } from '../../cluster/clock-watch.js'
import type { Cluster } from '../../cluster/cluster.js'
import { mergeCoverage, withoutSpans } from '../../cluster/merge-coverage.js'
import { mergePages, pageFromMs } from '../../cluster/merge-pages.js'
import type { PeerClient } from '../../cluster/peer-client.js'
import { hasCode } from '../../errors.js'
import { clusterHeadroom } from './cluster-headroom.js'
import { mostSpans } from './coverage-watch.js'

/** Who does not answer within this time is left out, and named. */
const answersWithinMs = 3_000

/** What this node answers by itself. */
type Here<Question, View> = (question: Question) => Promise<View>

/** What is asked of all nodes of a cluster, this one among them. */
export class AllNodes {
  constructor(
    readonly cluster: Pick<Cluster, 'settings' | 'others' | 'group'>,
    readonly peers: Pick<PeerClient, 'ask'>,
    readonly clocks: Pick<ClockWatch, 'differences'>,
  ) {}

  /** @param here - results of this node. @throws CursorError; what `here` throws where no other node answers */
  async recent(query: RecentQuery, here: Here<RecentQuery, RecentPage>): Promise<RecentPage> {
    const path = `/api/v1/detections?${recentParameters(query)}`
    const asked = await this.#ask(
      () => here(query),
      async (url) => {
        try {
          return await this.#json<RecentPage>(url, path)
        } catch (error) {
          if (isUnknownThere(error)) return { items: [] }
          throw error
        }
      },
    )
    const wrong = asked.failures.find(({ error }) => hasCode(error, 'GANTRY_CURSOR'))
    if (wrong !== undefined) throw wrong.error
    const pages = asked.answers.map(({ value }) => value)
    const page = mergePages(pages, query.limit)
    return {
      ...page,
      ...incompleteOf([
        ...missingNodes(asked, asked, Math.max(pageFromMs(page), query.fromMs ?? 0)),
        ...this.clocks.differences,
      ]),
    }
  }

  /** @throws CoverageTooLongError; what `here` throws where no other node answers */
  async coverage(
    question: CoverageQuestion,
    here: Here<CoverageQuestion, CoverageView>,
  ): Promise<CoverageView> {
    const { cameraId, fromMs, toMs, withSpans } = question
    const spans = { cameraId, from: timeText(fromMs), to: timeText(toMs), spans: '1' }
    const path = `/api/v1/coverage?${parameters(spans)}`
    const asked = await this.#ask(
      async () => (await here({ ...question, withSpans: true, isForSums: true })).items,
      async (url) => {
        try {
          return timesInCoverageBody(await this.#json(url, path))
        } catch (error) {
          if (hasCode(error, 'GANTRY_CAMERA_NOT_FOUND')) return []
          throw error
        }
      },
    )
    const tooLong = asked.failures.find(({ error }) => hasCode(error, 'GANTRY_BAD_REQUEST'))
    if (tooLong !== undefined) throw tooLong.error
    const missing = [...missingNodes(asked, asked, fromMs), ...this.clocks.differences]
    const items = mergeCoverage(
      asked.answers.map(({ value }) => value),
      missing.length === 0,
    )
    if (!withSpans) return { fromMs, toMs, items: withoutSpans(items), ...incompleteOf(missing) }
    const told = items.reduce((sum, item) => sum + (item.spans?.length ?? 0), 0)
    if (told > mostSpans.told) throw new CoverageTooLongError(mostSpans.told, withSpans)
    return { fromMs, toMs, items, ...incompleteOf(missing) }
  }

  /** Of this node, with what all have beside it. @throws CameraNotFoundError */
  async headroom(
    question: HeadroomQuestion,
    here: Here<HeadroomQuestion, HeadroomView>,
  ): Promise<HeadroomView> {
    const { like, sampleFps, latencyMs } = question
    const asked = parameters({ like, sampleFps: sampleFps?.toString(), latencyMs: latencyMs?.toString() })
    const own = await here(question)
    const { answers, ...rest } = await this.#ask(
      () => Promise.resolve(own),
      (url) => this.#json<HeadroomView>(url, `/api/v1/headroom?${asked}`),
    )
    const members = await this.cluster.group.nodes()
    const slotsOf = (node: string) => members.find(({ data }) => data.node === node)?.slots.length ?? 0
    const rooms = answers.map(({ node, value: view }) => ({ node, slots: slotsOf(node), view }))
    return { ...own, cluster: clusterHeadroom(rooms, missingNodes(rest, { ...rest, gone: [] }, 0)) }
  }

  /** One question to each node. @throws what `here` throws where no other node answers */
  async #ask<T>(
    here: () => Promise<T>,
    there: (url: string) => Promise<T>,
  ): Promise<NodesAnswers<T> & Omit<OtherNodes, 'nodes'>> {
    const { node } = this.cluster.settings.config
    const [own, { asked, gone, reason }] = await Promise.all([
      askNodes([{ node }], here),
      this.cluster.others().then(async ({ nodes, ...rest }) => {
        return { asked: await askNodes(nodes, ({ url }) => there(url)), ...rest }
      }),
    ])
    const [failed] = own.failures
    if (failed !== undefined && asked.answers.length === 0) throw failed.error
    return {
      answers: [...own.answers, ...asked.answers],
      failures: [...own.failures, ...asked.failures],
      ...{ gone, reason },
    }
  }

  async #json<T>(url: string, path: string): Promise<T> {
    const { bytes } = await this.peers.ask(url, { method: 'GET', path, withinMs: answersWithinMs })
    return JSON.parse(bytes.toString('utf8')) as T
  }
}

/** It has nothing of that camera, or its model does not know that label: others may. */
function isUnknownThere(error: unknown): boolean {
  return hasCode(error, 'GANTRY_CAMERA_NOT_FOUND') || hasCode(error, 'GANTRY_BAD_REQUEST')
}

function incompleteOf(missing: readonly string[]): Readonly<{ incomplete?: readonly string[] }> {
  return missing.length === 0 ? {} : { incomplete: missing }
}

function recentParameters({ limit, cameraId, label, fromMs, toMs, cursor }: RecentQuery): string {
  const [from, to] = [fromMs, toMs].map((ms) => (ms === undefined ? undefined : timeText(ms)))
  return parameters({ limit: String(limit), camera: cameraId, label, from, to, cursor })
}

function parameters(all: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return new URLSearchParams(given).toString()
}

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}
