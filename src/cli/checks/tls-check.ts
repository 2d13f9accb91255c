import { readFileSync } from 'node:fs'
import { validityFault, validityOf } from '../../config/server-tls.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { wallMs } from '../../lifecycle/clock.js'
import type { Finding } from '../findings.js'

/** How long the certificates of `server.tls` are good for; its files were found good when the settings were read. */
export function checkTls({ server: { tls } }: PipelineConfig, nowMs = wallMs()): Finding[] {
  if (tls === undefined) return []
  const { cert, clientCa } = tls
  return Object.entries({ cert, clientCa }).flatMap(([setting, path]) => {
    if (path === undefined) return []
    const subject = `server.tls.${setting}`
    const validity = validityOf(readFileSync(path, 'utf8'))
    const fault = validityFault(validity, nowMs)
    const until = new Date(validity.untilMs).toISOString().slice(0, 10)
    if (fault === undefined)
      return { subject, state: 'ok', detail: `${path}: ${validity.subject}, until ${until}` } as const
    const isGood = nowMs >= validity.fromMs && nowMs < validity.untilMs
    const fix = 'put a new one in its place: a service that runs takes it by itself'
    return { subject, state: isGood ? 'warning' : 'failed', detail: `${path}: ${fault}`, fix } as const
  })
}
