import { type TracingConfig, isTracingOn } from '../config/tracing.js'
import type { Log } from '../lifecycle/log.js'
import type { TracedProcess, Tracing } from './spans.js'
import { TracingThread } from './tracing-thread.js'

/**
 * Traces as the settings ask for them.
 *
 * @returns undefined where nothing is traced.
 * @throws GantryError where files of `tracing.tls` that were right when the settings were read are not any more, SystemLimitError
 */
export async function openTracing(
  config: TracingConfig,
  who: TracedProcess,
  log: Log,
): Promise<Tracing | undefined> {
  if (!isTracingOn(config)) return undefined
  const tracing = await TracingThread.start({ config, who }, log)
  log.info(
    { endpoint: config.endpoint, protocol: config.protocol, sampling: config.sampling },
    'tracing by OpenTelemetry',
  )
  return tracing
}
