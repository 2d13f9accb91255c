import { ExportResultCode, type ExportResult } from '@opentelemetry/core'
import type { TracingTarget } from '../config/tracing.js'
import { atMost } from '../lifecycle/delay.js'
import type { Log } from '../lifecycle/log.js'
import { exportFailure } from './export-failure.js'
import { createExporter } from './otlp-exporter.js'

const probeAtMostMs = 5_000
const closeAtMostMs = 500

/** Whether spans are taken, by sending none. @returns undefined where they are, else what is wrong. @throws GantryError, of `tracing.tls` */
export async function probeCollector(
  target: TracingTarget,
  log: Log,
): Promise<ReturnType<typeof exportFailure> | undefined> {
  const timeoutMs = Math.min(target.timeoutMs, probeAtMostMs)
  const exporter = await createExporter({ ...target, timeoutMs }, log)
  try {
    const asked = new Promise<ExportResult>((resolve) => exporter.export([], resolve))
    const result = await atMost(timeoutMs + closeAtMostMs, asked)
    if (result?.code === ExportResultCode.SUCCESS) return undefined
    return exportFailure(result?.error ?? new Error(`no answer within ${timeoutMs} ms`), target)
  } finally {
    await atMost(closeAtMostMs, exporter.shutdown())
  }
}
