import type {
  AdmittedCamera,
  CoverageQuestion,
  CoverageView,
  EnsembleView,
  Gantry,
  HeadroomQuestion,
  HeadroomView,
  ModelsView,
  Readiness,
  SinkPlaces,
  TakenSnapshot,
} from '../../api/gantry.js'
import type { CameraPreview } from '../../api/preview-schema.js'
import type { StreamUpstream } from '../../api/stream-upstream.js'
import type { RecentPage, RecentQuery } from '../../cache/result-cache.js'
import { CameraExistsError, CameraNotFoundError } from '../../cameras/engine-errors.js'
import { type CameraView, noStats, shownConfig } from '../../cameras/camera-view.js'
import type { ClockWatch } from '../../cluster/clock-watch.js'
import { type Cluster, NodeNotReadyError } from '../../cluster/cluster.js'
import type { PeerClient, PeerQuestion } from '../../cluster/peer-client.js'
import type { GroupNode } from '../../cluster/slot-group.js'
import type { CameraConfig, CameraPatch, NewCamera } from '../../config/camera.js'
import type { CameraPreviewRequest } from '../../config/camera-preview.js'
import type { EnsembleChangeRequest } from '../../config/ensemble-change.js'
import { hasCode } from '../../errors.js'
import { nowMs, wallMs } from '../../lifecycle/clock.js'
import { delay } from '../../lifecycle/delay.js'
import type { DetectionsMessage } from '../../messages/detections-message.js'
import type { GpuFigures } from '../../metrics/gpu-metrics.js'
import { AllNodes } from './all-nodes.js'
import type { GantryService } from './service.js'

/** Longest that a change waits for a node to have the camera, while the group forms. */
const ownerWithinMs = 5_000
const askAgainMs = 200
/** A picture of a main stream may take this long. */
const snapshotWithinMs = 15_000
/** A camera that is tried may take longer than that to open. */
const previewWithinMs = 35_000
/** Who does not say within this time how its cameras stand is left out. */
const viewsWithinMs = 1_500
const pictureType = 'application/octet-stream'

const pathOf = (id: string) => `/api/v1/cameras/${encodeURIComponent(id)}`
const never = new AbortController().signal

/** A node of a cluster as clients see it: what is about a camera is answered by the node that has it. */
export class ClusterGantry implements Gantry {
  readonly onThisNode: Gantry
  readonly peers: PeerClient | undefined
  readonly #allNodes: AllNodes | undefined

  /** @param beside - how others are asked; absent: answers for this node alone. */
  constructor(
    readonly local: GantryService,
    readonly cluster: Cluster,
    beside: Readonly<{ peers: PeerClient; clocks: ClockWatch }> | undefined,
  ) {
    this.onThisNode = beside === undefined ? this : new ClusterGantry(local, cluster, undefined)
    this.peers = beside?.peers
    this.#allNodes = beside && new AllNodes(cluster, beside.peers, beside.clocks)
  }

  get name(): string {
    return this.local.name
  }

  get version(): string {
    return this.local.version
  }

  get sinkPlaces(): SinkPlaces {
    return this.local.sinkPlaces
  }

  get stream(): StreamUpstream {
    return this.local.stream
  }

  async cameras(): Promise<readonly CameraView[]> {
    const { node } = this.cluster.settings.config
    const own = this.local.cameras().map((view) => ({ ...view, node }))
    if (this.peers === undefined) return own
    const nodes = await this.cluster.group.nodes()
    const { views, silent } = await viewsOf(
      nodes.filter(({ isThis }) => !isThis),
      this.peers,
    )
    // One that goes over is with two nodes for a while: it is live as long as one of them sees it.
    const told = [...views, ...own].sort((a, b) => Number(isLive(a)) - Number(isLive(b)))
    const known = new Map(told.map((view) => [view.id, view]))
    const owners = new Map(nodes.flatMap((each) => each.slots.map((slot) => [slot, each] as const)))
    return [...this.cluster.registry.cameras.values()].map((config) => {
      const owner = owners.get(this.cluster.slotOf(config.id))
      return known.get(config.id) ?? awaited(config, owner, owner && silent.get(owner))
    })
  }

  async camera(id: string): Promise<CameraView> {
    const config = this.#known(id)
    const { node } = this.cluster.settings.config
    if (this.#isOwn(id)) return { ...this.local.camera(id), node }
    const owner = this.peers && (await this.cluster.ownerOf(id))
    if (this.peers === undefined || owner === undefined || owner.isThis) return awaited(config, owner)
    return this.peers
      .ask(owner.data.url, { method: 'GET', path: pathOf(id), withinMs: viewsWithinMs })
      .then((answer) => jsonOf<CameraView>(answer))
      .catch((error: unknown) => awaited(config, owner, error))
  }

  addCamera(camera: NewCamera): Promise<AdmittedCamera> {
    if (this.cluster.registry.cameras.has(camera.id)) throw new CameraExistsError(camera.id)
    return this.#byOwner(
      camera.id,
      () => this.local.addCamera(camera),
      { method: 'POST', path: '/api/v1/cameras', body: camera },
      jsonOf<AdmittedCamera>,
    )
  }

  patchCamera(id: string, patch: CameraPatch): Promise<AdmittedCamera> {
    this.#known(id)
    return this.#byOwner(
      id,
      () => this.local.patchCamera(id, patch),
      { method: 'PATCH', path: pathOf(id), body: patch },
      jsonOf<AdmittedCamera>,
    )
  }

  removeCamera(id: string): Promise<void> {
    this.#known(id)
    return this.#byOwner(
      id,
      () => this.local.removeCamera(id),
      { method: 'DELETE', path: pathOf(id) },
      () => undefined,
    )
  }

  snapshot(id: string, wishes: Readonly<{ overlay: boolean; own: boolean }>): Promise<TakenSnapshot> {
    this.#known(id)
    const query = `overlay=${wishes.overlay ? 1 : 0}&size=${wishes.own ? 'own' : 'analysed'}`
    return this.#byOwner(
      id,
      () => this.local.snapshot(id, wishes),
      { method: 'GET', path: `${pathOf(id)}/snapshot.jpg?${query}`, withinMs: snapshotWithinMs },
      ({ headers, bytes }) => {
        const [widthPx = 0, heightPx = 0] = (headers('gantry-picture-size') ?? '').split('x').map(Number)
        const capturedAtMs = Date.parse(headers('gantry-captured-at') ?? '')
        const picture = headers('gantry-picture') === 'own' ? 'own' : 'analysed'
        return { jpeg: bytes, picture, widthPx, heightPx, capturedAtMs }
      },
    )
  }

  pushFrame(id: string, image: Uint8Array): Promise<Readonly<{ seq: number }>> {
    this.#known(id)
    return this.#byOwner(
      id,
      () => this.local.pushFrame(id, image),
      { method: 'POST', path: `${pathOf(id)}/frames`, bytes: { type: pictureType, data: image } },
      jsonOf<Readonly<{ seq: number }>>,
    )
  }

  async latest(id: string): Promise<DetectionsMessage | undefined> {
    this.#known(id)
    return this.#byOwner(
      id,
      () => this.local.latest(id),
      { method: 'GET', path: `${pathOf(id)}/latest` },
      jsonOf<DetectionsMessage>,
    )
  }

  /** Those of all nodes, also of one camera: it may have been with others before. */
  async recent(query: RecentQuery): Promise<RecentPage> {
    const here = (asked: RecentQuery) => this.local.recent(asked)
    return this.#allNodes === undefined ? here(query) : this.#allNodes.recent(query, here)
  }

  /** Of all nodes; of a camera that went from one to another as one time. */
  async coverage(question: CoverageQuestion): Promise<CoverageView> {
    const here = (asked: CoverageQuestion) => this.local.coverage(asked)
    if (this.#allNodes === undefined) return here({ ...question, isForSums: true })
    return this.#allNodes.coverage(question, here)
  }

  /** Of a camera that is there by the node that has it, which knows its login; else by this node. */
  async previewCamera(asked: CameraPreviewRequest, signal: AbortSignal): Promise<CameraPreview> {
    const { id } = asked
    if (id === undefined || !this.cluster.registry.cameras.has(id))
      return this.local.previewCamera(asked, signal)
    return this.#byOwner(
      id,
      () => this.local.previewCamera(asked, signal),
      { method: 'POST', path: '/api/v1/cameras/preview', body: asked, withinMs: previewWithinMs, signal },
      jsonOf<CameraPreview>,
    )
  }

  readiness(): Readiness {
    return this.local.readiness()
  }

  /** Of this node, and beside it what all have. @throws CameraNotFoundError */
  async headroom(question: HeadroomQuestion): Promise<HeadroomView> {
    const here = (asked: HeadroomQuestion) => Promise.resolve(this.local.headroom(this.#likeHere(asked)))
    return this.#allNodes === undefined ? here(question) : this.#allNodes.headroom(question, here)
  }

  /** A node that does not have the camera reckons with its own average one, and with as many pictures of it. */
  #likeHere({ like, ...question }: HeadroomQuestion): HeadroomQuestion {
    if (like === undefined) return question
    const { sampleFps } = this.#known(like)
    return this.#isOwn(like)
      ? { like, ...question }
      : { ...question, sampleFps: question.sampleFps ?? sampleFps }
  }

  ensemble(): EnsembleView {
    return this.local.ensemble()
  }

  models(): Promise<ModelsView> {
    return this.local.models()
  }

  changeEnsemble(request: EnsembleChangeRequest): Promise<EnsembleView> {
    return this.local.changeEnsemble(request)
  }

  gpus(): readonly GpuFigures[] {
    return this.local.gpus()
  }

  metrics(): AsyncIterable<string> {
    return this.local.metrics()
  }

  #isOwn(id: string): boolean {
    return this.cluster.generationOf(id) !== undefined
  }

  #known(id: string): CameraConfig {
    const config = this.cluster.registry.cameras.get(id)
    if (config === undefined) throw new CameraNotFoundError(id)
    return config
  }

  /**
   * Done by the node that has the camera: this one, or another that is asked. While the group forms it waits for one.
   *
   * @throws NodeNotReadyError where none has it in time; PeerUnavailableError; what the owner says is wrong
   */
  async #byOwner<T>(
    id: string,
    here: () => Promise<T>,
    question: PeerQuestion,
    read: (answer: Awaited<ReturnType<PeerClient['ask']>>) => T,
  ): Promise<T> {
    const untilMs = nowMs() + ownerWithinMs
    for (;;) {
      if (this.#isOwn(id)) return here()
      if (this.peers === undefined) throw new NodeNotReadyError(id)
      const owner = await this.cluster.ownerOf(id)
      try {
        if (owner !== undefined && !owner.isThis) return read(await this.peers.ask(owner.data.url, question))
      } catch (error) {
        // It has lost the camera meanwhile, or has not begun with it.
        if (!hasCode(error, 'GANTRY_CLUSTER_MOVED') || nowMs() > untilMs) throw error
      }
      if (nowMs() > untilMs) throw new NodeNotReadyError(id)
      await delay(askAgainMs, never)
    }
  }
}

function isLive({ status }: CameraView): boolean {
  return status.state === 'live'
}

/** What other nodes say of their cameras, and why some say nothing. */
async function viewsOf(
  others: readonly GroupNode[],
  peers: PeerClient,
): Promise<Readonly<{ views: readonly CameraView[]; silent: ReadonlyMap<GroupNode, unknown> }>> {
  const question = { method: 'GET', path: '/api/v1/cameras', withinMs: viewsWithinMs } as const
  const silent = new Map<GroupNode, unknown>()
  const views = await Promise.all(
    others.map(async (other) => {
      try {
        return jsonOf<{ items: CameraView[] }>(await peers.ask(other.data.url, question)).items
      } catch (error) {
        silent.set(other, error)
        return []
      }
    }),
  )
  return { views: views.flat(), silent }
}

/** A camera that no node has said anything of. @param error - why its node has not */
function awaited(config: CameraConfig, owner: GroupNode | undefined, error?: unknown): CameraView {
  const node = owner?.data.node
  const toldBy = error instanceof Error ? error.message : `node ${node} begins with it`
  const reason = node === undefined ? 'no node has it yet' : toldBy
  return {
    id: config.id,
    config: shownConfig(config),
    persist: true,
    origin: 'api',
    status: { state: 'connecting', reason, sinceMs: wallMs(), attempts: 0 },
    stats: noStats,
    node: node ?? null,
  }
}

function jsonOf<T>({ bytes }: Readonly<{ bytes: Buffer }>): T {
  return JSON.parse(bytes.toString('utf8')) as T
}
