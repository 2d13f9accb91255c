import { connectsAtOnce, type PipelineConfig } from '../../config/pipeline.js'
import type { CameraShapes } from '../../detector/input-size.js'
import { createLog } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../lifecycle/address-policy.js'
import { lookAtCamera } from '../../sources/camera-look.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import type { LookSetting } from '../../sources/first-picture.js'
import type { Finding } from '../findings.js'

const probeMs = 10_000
/** Two pictures of a camera that sends one a minute, and some. */
const openProbeMs = 150_000

/**
 * Whether each camera's URL would be opened; with `probe`, whether a picture comes: of one that sends and takes long, `say` is told. `shapes` is what is known then of those that are
 * enabled.
 */
export async function checkCameras(
  config: PipelineConfig,
  { probe, say = () => undefined }: { probe: boolean; say?: (line: string) => void },
): Promise<Readonly<{ findings: readonly Finding[]; shapes: CameraShapes }>> {
  const setting: LookSetting = {
    mediaRoot: config.mediaRoot ?? '.',
    addresses: new AddressPolicy(config.cameraNetworks),
    connectGate: new ConnectGate(connectsAtOnce(config)),
    log: createLog({ level: 'error', format: 'json' }, 'check'),
  }
  const waits = (id: string) => () =>
    say(
      `camera ${id} answers, and has sent no picture in ${probeMs / 1_000} s: waiting up to ${openProbeMs / 1_000} s`,
    )
  const looks = await Promise.all(
    config.cameras.map((camera) => {
      const times = { withinMs: probeMs, openMs: openProbeMs, waits: waits(camera.id) }
      return lookAtCamera(camera, setting, probe ? times : undefined)
    }),
  )
  return {
    findings: looks.map(({ state, detail, fix }, index) => ({
      subject: `camera ${config.cameras[index]?.id ?? ''}`,
      state,
      detail,
      ...(fix !== undefined && { fix }),
    })),
    shapes: {
      pictures: looks.flatMap(({ analysed }) => analysed ?? []),
      cameras: config.cameras.filter(({ enabled }) => enabled).length,
    },
  }
}
