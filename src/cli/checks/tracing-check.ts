import type { PipelineConfig } from '../../config/pipeline.js'
import { isTracingOn } from '../../config/tracing.js'
import { silentLog } from '../../lifecycle/log.js'
import type { Finding } from '../findings.js'

/** Asks what collects traces to take no spans at all, as the service will ask it to take some. The library is loaded where there is one. */
export async function checkTracing(
  { tracing }: Pick<PipelineConfig, 'tracing'>,
  network: boolean,
): Promise<Finding[]> {
  if (!isTracingOn(tracing)) return []
  const { endpoint, protocol, sampling, headers } = tracing
  const subject = `tracing ${new URL(endpoint).host}`
  const open: Finding[] =
    /^http:/i.test(endpoint) && Object.keys(headers).length > 0
      ? [
          {
            subject,
            state: 'warning',
            detail: 'headers travel without TLS',
            fix: 'set tracing.endpoint to https://',
          },
        ]
      : []
  if (!network) return [{ subject, state: 'skipped', detail: 'offline' }, ...open]
  const { probeCollector } = await import('../../tracing/probe-collector.js')
  const failure = await probeCollector(tracing, silentLog())
  if (failure === undefined) {
    const detail = `takes spans by ${protocol}, ${sampling * 100} % of frames and requests`
    return [{ subject, state: 'ok', detail }, ...open]
  }
  // Nothing else depends on it.
  return [{ subject, state: 'warning', detail: failure.reason, fix: failure.fix }, ...open]
}
