import { tmpdir } from 'node:os'
import { CameraStore } from '../../cameras/camera-store.js'
import type { PipelineConfig } from '../../config/pipeline.js'
import { toErrorRecord } from '../../errors.js'
import { tryTemporaryFolder, whyNotWritable } from '../../lifecycle/temporary-folder.js'
import type { Finding } from '../findings.js'

/** Whether the folders of a service can be used, by making in them what it makes; nothing is left there. */
export async function checkFolders(config: PipelineConfig): Promise<Finding[]> {
  const [temporary, store, traces] = await Promise.all([
    checkTemporaryFolder(),
    checkStore(config),
    checkTraces(config),
  ])
  return [temporary, store, ...traces]
}

export async function checkTemporaryFolder(): Promise<Finding> {
  const subject = 'temporary folder'
  try {
    await tryTemporaryFolder()
    return { subject, state: 'ok', detail: tmpdir() }
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return { subject, state: 'failed', detail: message, fix: hint }
  }
}

/** A service starts without writing there; what it has saved it has to read. */
async function checkStore({ store: { path } }: PipelineConfig): Promise<Finding> {
  const subject = 'store'
  try {
    await new CameraStore(path).load()
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return { subject, state: 'failed', detail: message, fix: hint }
  }
  const reason = await whyNotWritable(path)
  if (reason === undefined) return { subject, state: 'ok', detail: path }
  return {
    subject,
    state: 'warning',
    detail: `nothing can be written into ${path}: ${reason}. Cameras cannot be kept over a restart, and models are tried again at each`,
    fix: 'set store.path to a folder that the user of the service can write',
  }
}

async function checkTraces({ modelServer }: PipelineConfig): Promise<Finding[]> {
  const { dir } = modelServer.trace
  if (!modelServer.enabled || dir === undefined) return []
  const reason = await whyNotWritable(dir)
  if (reason === undefined) return []
  return [
    {
      subject: 'traces',
      state: 'warning',
      detail: `nothing can be written into ${dir}: ${reason}`,
      fix: 'set modelServer.trace.dir to a folder that the user of the service can write',
    },
  ]
}
