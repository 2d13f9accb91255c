import type { PipelineConfig } from '../../config/pipeline.js'
import { PublicBindError } from '../../api/errors.js'
import { isPublic } from '../../api/access.js'
import type { Finding } from '../findings.js'

/** Whether the service would take its address; a port in use may be that of the very service whose file is looked at. */
export function checkAddress({ server }: PipelineConfig): Finding[] {
  if (!isPublic(server)) return []
  const { message, hint } = new PublicBindError(server.host)
  return [{ subject: 'address', state: 'failed', detail: message, fix: hint }]
}
