import { PeerStreams } from '../../cluster/peer-streams.js'
import type { StreamPast } from '../../delivery/websocket/replay.js'
import type { SharedPast } from '../../delivery/websocket/shared-replay.js'
import { defaultStreamLimits } from '../../delivery/websocket/stream-limits.js'
import { type HubSettings, WebSocketHub } from '../../delivery/websocket/websocket-hub.js'
import type { Log } from '../../lifecycle/log.js'
import type { NodeStreamSetup } from './protocol.js'

/**
 * The stream of a node of a cluster: one hub has what is seen on its own cameras, for the other nodes, and one what all nodes see, for viewers.
 */
export class NodeStream {
  readonly own: WebSocketHub
  readonly all: WebSocketHub
  readonly peers: PeerStreams
  /** Cameras whose pictures somebody wants, of each hub. */
  #pictures: readonly ReadonlySet<string>[] = []

  constructor(
    { token, tls, past }: NodeStreamSetup,
    settings: HubSettings,
    /** What was published here. */
    ownPast: StreamPast | undefined,
    readonly onPictureCameras: (cameras: ReadonlySet<string>) => void,
    log: Log,
  ) {
    this.own = new WebSocketHub(settings, log, defaultStreamLimits, ownPast)
    this.peers = new PeerStreams({
      ...{ token, tls, log },
      result: (cameraId, json, picture) => this.all.publish({ cameraId, json }, picture),
      gap: (dropped) => this.all.missed('*', dropped),
      newest: () => this.all.newest,
    })
    this.all = new WebSocketHub(settings, log, defaultStreamLimits, undefined, {
      completeMs: () => this.peers.completeMs,
      wholeFrom: (cameras) => this.peers.wholeFrom(cameras),
      past: past === undefined ? nothing : topicOf(past, log),
    })
    const want = () => this.peers.want(this.all.resultCameras, this.all.pictureCameras)
    this.all.onResultCameras = want
    for (const hub of [this.own, this.all])
      hub.onPictureCameras = () => {
        if (hub === this.all) want()
        this.#pictures = [this.own.pictureCameras, this.all.pictureCameras]
        this.onPictureCameras(new Set(this.#pictures.flatMap((cameras) => [...cameras])))
      }
  }

  /** Closes every client with 1001. Idempotent. */
  async stop(): Promise<void> {
    this.peers.stop()
    await Promise.all([this.own.stop(), this.all.stop()])
  }
}

/** Results are delivered nowhere that nodes can read. */
const nothing: SharedPast = { read: () => Promise.resolve(false) }

/** Loaded when the first client comes back that needs it. */
function topicOf({ kafka, groupId }: NonNullable<NodeStreamSetup['past']>, log: Log): SharedPast {
  let topic: Promise<SharedPast> | undefined
  return {
    read: async (fromMs, offer, isLive, signal) => {
      topic ??= import('../../cluster/topic-past.js').then(
        ({ TopicPast }) => new TopicPast(kafka, groupId, log),
      )
      return (await topic).read(fromMs, offer, isLive, signal)
    },
  }
}
