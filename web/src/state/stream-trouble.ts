import type { StreamState } from '../../../clients/typescript/src/index.js'
import { useDashboard } from './context.js'
import { useStore } from './store.js'

export type StreamTrouble = Readonly<{
  /** What does not come. */
  what: 'pictures' | 'results' | 'all'
  /** Of what is worst off. */
  stream: StreamState
}>

/** What is amiss with the two live streams, one of results and one of pictures; undefined while both run or were just begun. */
export function useStreamTrouble(): StreamTrouble | undefined {
  const { results, pictures } = useDashboard()
  return streamTrouble(useStore(results.stream), useStore(pictures.stream))
}

export function streamTrouble(results: StreamState, pictures: StreamState): StreamTrouble | undefined {
  const [noResults, noPictures] = [results, pictures].map(({ trouble }) => trouble !== undefined)
  if (noResults && noPictures) return { what: 'all', stream: results.state === 'open' ? pictures : results }
  if (noResults) return { what: 'results', stream: results }
  return noPictures ? { what: 'pictures', stream: pictures } : undefined
}
