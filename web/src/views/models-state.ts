import type { Model, ModelVersion } from '../api/types.js'

export type Shown = Readonly<{ tone: 'ok' | 'info' | 'warn' | 'bad' | 'idle'; text: string; reason: string }>

/** What the index says of models that nobody wants; they are no failures. */
const restful: Readonly<Record<string, string>> = {
  unloaded: 'unloaded',
  'not asked for yet': 'not asked for',
}

/** State of one version, for people. */
export function versionState({ state, reason }: Pick<ModelVersion, 'state' | 'reason'>): Shown {
  switch (state) {
    case 'READY':
      return { tone: reason === '' ? 'ok' : 'warn', text: 'ready', reason }
    case 'LOADING':
      return { tone: 'info', text: 'loading', reason }
    case 'UNLOADING':
      return { tone: 'info', text: 'unloading', reason }
    case '':
      return reason === ''
        ? { tone: 'idle', text: 'not loaded', reason }
        : { tone: 'bad', text: 'unavailable', reason }
    case 'UNKNOWN':
    case 'UNAVAILABLE': {
      const rest = restful[reason]
      return rest === undefined
        ? { tone: 'bad', text: 'unavailable', reason }
        : { tone: 'idle', text: rest, reason: '' }
    }
  }
}

const worstFirst = ['bad', 'warn', 'info', 'ok', 'idle'] as const

/** State of all versions together: that of the worst, and how many serve. */
export function modelState({ versions, forCameras }: Pick<Model, 'versions' | 'forCameras'>): Shown {
  if (versions.length === 0)
    return forCameras.length > 0
      ? { tone: 'ok', text: 'for cameras', reason: '' }
      : { tone: 'idle', text: 'not loaded', reason: '' }
  const states = versions.map(versionState)
  const ready = versions.filter(({ state }) => state === 'READY').length
  const worst = worstFirst
    .map((tone) => states.find((state) => state.tone === tone))
    .find((state) => state !== undefined)!
  if (worst.tone === 'bad' && ready > 0)
    return { tone: 'warn', text: `${ready} of ${versions.length} ready`, reason: worst.reason }
  return worst
}
