/** Bounds of the stream; tests shrink them, nobody else changes them. */
export type StreamLimits = Readonly<{
  /** Ping after this long without a word from the client. */
  pingAfterMs: number
  /** Without a pong, a message or a byte leaving for this long, the connection is taken for dead. */
  deadAfterMs: number
  /** Unsent bytes of one client above which it is skipped; it is served again below half of it. */
  maxBufferedBytes: number
  /** Unsent bytes above which a client gets no pictures. */
  maxPictureBufferedBytes: number
  /** A client that stays over `maxBufferedBytes` this long is closed with 1013. */
  slowCloseMs: number
  /** Time a closing client has for the closing handshake. */
  closeGraceMs: number
  /** How often slow and silent clients are looked for. */
  sweepMs: number
  /** Clients served before the event loop gets its turn. */
  chunkClients: number
  /** Share of its time that the loop may be busy before messages are gathered. */
  idleLoad: number
  /** From here on they are gathered for `gatherMs`. */
  busyLoad: number
  /** How long after its publishing a message may wait at most for others to go with it. */
  gatherMs: number
  /** Bytes of gathered messages that go to one client in one write. */
  gatherBytes: number
  /** Messages that may wait for the broadcast; then the oldest is left out for everybody. */
  maxBacklog: number
  /** Window for `resumeAfter`. */
  resumeMessages: number
  resumeBytes: number
  /** Messages of one replay before the event loop gets its turn. */
  replayChunk: number
  /** Bad messages within `badWindowMs` that close a client with 1008. */
  maxBadMessages: number
  badWindowMs: number
  /** `subscribe` messages a client may send within `subscribeWindowMs`. */
  maxSubscribes: number
  subscribeWindowMs: number
  /** `ping` messages a client may send within `pingWindowMs`; a page sends one in 3 s. */
  maxPings: number
  pingWindowMs: number
}>

export const defaultStreamLimits: StreamLimits = {
  // With a sweep every second, 15 and 30 s at most.
  pingAfterMs: 14_000,
  deadAfterMs: 29_000,
  maxBufferedBytes: 1024 ** 2,
  maxPictureBufferedBytes: 256 * 1024,
  slowCloseMs: 30_000,
  closeGraceMs: 2_000,
  sweepMs: 1_000,
  chunkClients: 50,
  idleLoad: 0.1,
  busyLoad: 0.5,
  gatherMs: 50,
  gatherBytes: 64 * 1024,
  maxBacklog: 64,
  resumeMessages: 2_000,
  resumeBytes: 8 * 1024 ** 2,
  replayChunk: 100,
  maxBadMessages: 5,
  badWindowMs: 60_000,
  maxSubscribes: 20,
  subscribeWindowMs: 10_000,
  maxPings: 20,
  pingWindowMs: 10_000,
}
