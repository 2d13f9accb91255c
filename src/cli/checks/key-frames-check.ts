import type { PipelineConfig } from '../../config/pipeline.js'
import { keepsKeyFrames, mostKeyFrameBytes } from '../../sources/key-frame-keeper.js'
import type { Finding } from '../findings.js'

const mib = 1024 ** 2

/** What the copies of key frames, from which snapshots are made, may take of memory: of cameras by RTSP over TCP, however they are decoded. */
export function checkKeyFrames({ cameras }: Pick<PipelineConfig, 'cameras'>): Finding[] {
  const keeping = cameras.filter((camera) => camera.enabled && keepsKeyFrames(camera)).length
  if (keeping === 0) return []
  const eachMiB = mostKeyFrameBytes / mib
  return [
    {
      subject: 'key frames',
      state: 'ok',
      detail: `kept for snapshots: ${keeping} x ${eachMiB} MiB = ${keeping * eachMiB} MiB of memory at worst, with key frames of 4 MiB; those of 4K cameras have about 1`,
    },
  ]
}
