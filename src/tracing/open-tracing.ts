import { type TracingConfig, isTracingOn } from '../config/tracing.js'
import type { Log } from '../lifecycle/log.js'
import type { TracedProcess, Tracing } from './spans.js'

/**
 * Traces as the settings ask for them; the library is loaded where they do.
 *
 * @returns undefined where nothing is traced.
 * @throws GantryError where files of `tracing.tls` that were right when the settings were read are not any more
 */
export async function openTracing(
  config: TracingConfig,
  who: TracedProcess,
  log: Log,
): Promise<Tracing | undefined> {
  if (!isTracingOn(config)) return undefined
  const { openOtelTracing } = await import('./otel-tracing.js')
  return openOtelTracing(config, who, log)
}
