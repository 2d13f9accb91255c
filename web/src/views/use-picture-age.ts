import type { Camera } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import { useEachSecond } from '../state/seconds.js'
import { monotonicMs, serviceClock } from '../state/service-clock.js'
import { duration } from './format.js'

/** How old the picture of a camera is (`12 s`) where it is older than it should be; undefined for a live one, and where there is none. */
export function usePictureAge({ id, status, stats, config }: Camera): string | undefined {
  const { pictures } = useDashboard()
  return useEachSecond(() => {
    if (status.state !== 'live') return undefined
    const flowing = pictures.stream.value.state === 'open' && pictures.stream.value.trouble === undefined
    const told = { inferredFps: stats.inferredFps, sampleFps: config.sampleFps }
    const ageMs = pictures.player(id).pace.staleMs(serviceClock.now(), monotonicMs(), flowing, told)
    return ageMs === undefined ? undefined : duration(ageMs)
  })
}
