import type { DetectionsMessage } from '../messages/detections-message.js'
import type { Subscription } from '../messages/stream-protocol.js'

/** Which detections of a message a client wants. Equal filters have equal keys; the key of "everything" is empty. */
export type MessageFilter = Readonly<{ key: string; labels: ReadonlySet<string>; minScore: number }>

export const keepAll: MessageFilter = { key: '', labels: new Set(), minScore: 0 }

export function filterOf(subscription: Pick<Subscription, 'labels' | 'minScore'>): MessageFilter {
  const labels = new Set(subscription.labels)
  if (labels.size === 0 && subscription.minScore === 0) return keepAll
  const key = JSON.stringify([subscription.minScore, ...[...labels].sort()])
  return { key, labels, minScore: subscription.minScore }
}

/** Positions of the detections that pass, ascending. */
export function keptPositions(
  filter: MessageFilter,
  detections: DetectionsMessage['detections'],
): readonly number[] {
  const kept: number[] = []
  detections.forEach(({ label, score }, position) => {
    if (score >= filter.minScore && (filter.labels.size === 0 || filter.labels.has(label)))
      kept.push(position)
  })
  return kept
}
