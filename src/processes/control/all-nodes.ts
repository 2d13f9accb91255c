import type { RecentPage, RecentQuery } from '../../cache/result-cache.js'
import { askNodes, missingFrom, type NodesAnswers, type OtherNodes } from '../../cluster/ask-nodes.js'
import type { Cluster } from '../../cluster/cluster.js'
import { mergePages, pageFromMs } from '../../cluster/merge-pages.js'
import type { PeerClient } from '../../cluster/peer-client.js'
import { hasCode } from '../../errors.js'

/** Who does not answer within this time is left out, and named. */
const answersWithinMs = 3_000

/** What is asked of all nodes of a cluster, this one among them. */
export class AllNodes {
  constructor(
    readonly cluster: Pick<Cluster, 'settings' | 'others'>,
    readonly peers: Pick<PeerClient, 'ask'>,
  ) {}

  /** @param here - results of this node. @throws CursorError; what `here` throws where no other node answers */
  async recent(query: RecentQuery, here: () => Promise<RecentPage>): Promise<RecentPage> {
    const path = `/api/v1/detections?${recentParameters(query)}`
    const asked = await this.#ask(here, async (url) => {
      try {
        return await this.#json<RecentPage>(url, path)
      } catch (error) {
        if (isUnknownThere(error)) return { items: [] }
        throw error
      }
    })
    const wrong = asked.failures.find(({ error }) => hasCode(error, 'GANTRY_CURSOR'))
    if (wrong !== undefined) throw wrong.error
    const pages = asked.answers.map(({ value }) => value)
    const page = mergePages(pages, query.limit)
    return {
      ...page,
      ...incompleteOf([
        ...pages.flatMap(({ incomplete = [] }) => incomplete),
        ...missingFrom(asked, asked, Math.max(pageFromMs(page), query.fromMs ?? 0)),
      ]),
    }
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
  const time = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString())
  const all = { limit: String(limit), camera: cameraId, label, from: time(fromMs), to: time(toMs), cursor }
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return new URLSearchParams(given).toString()
}
