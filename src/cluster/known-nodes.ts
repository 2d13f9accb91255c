import { wallMs } from '../lifecycle/clock.js'
import type { GoneNode } from './ask-nodes.js'
import type { MemberData } from './member-data.js'

/** Nodes that are gone and remembered: names may be made for each start. */
const mostGone = 64

/** A node of the cluster, as one of them knows it. */
export type NodeView = Readonly<{
  node: string
  /** Where the other nodes reach it; null where that was never told. */
  url: string | null
  /** null of one that has left. */
  version: string | null
  /** RFC 3339; null of one that is there. */
  leftAt: string | null
}>

/** The other nodes as this one has met them, and those that have left since. */
export class KnownNodes {
  /** Those of the group as it formed last. */
  others: readonly MemberData[] = []
  hasMet = false
  /** Wall time at which nodes were found to be gone, by name. */
  readonly #gone = new Map<string, number>()
  /** Where nodes are, and were. */
  readonly #urls = new Map<string, string>()

  get gone(): readonly GoneNode[] {
    return [...this.#gone].map(([node, leftMs]) => ({ node, leftMs }))
  }

  /** All of them, by name. */
  views(own: Pick<MemberData, 'node' | 'url' | 'version'>): readonly NodeView[] {
    const here = [own, ...this.others].map(({ node, url, version }) => ({ node, url, version, leftAt: null }))
    const gone = this.gone.map(({ node, leftMs }) => {
      return { node, url: this.urlOf(node) ?? null, version: null, leftAt: new Date(leftMs).toISOString() }
    })
    return [...here, ...gone].sort((a, b) => (a.node < b.node ? -1 : 1))
  }

  /** The group has formed. */
  met(others: readonly MemberData[]): void {
    const here = new Set(others.map(({ node }) => node))
    for (const { node } of this.others) if (!here.has(node)) this.#gone.set(node, wallMs())
    for (const node of here) this.#gone.delete(node)
    for (const node of [...this.#gone.keys()].slice(0, -mostGone)) this.#gone.delete(node)
    this.others = others
    this.hasMet = true
    this.seen(others)
  }

  /** Where nodes are that have not been met yet. */
  seen(nodes: readonly Pick<MemberData, 'node' | 'url'>[]): void {
    for (const { node, url } of nodes) this.#urls.set(node, url)
  }

  /** @returns undefined for a node that was never there. */
  urlOf(node: string): string | undefined {
    return this.#urls.get(node)
  }
}
