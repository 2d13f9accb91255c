import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { z } from 'zod'
import type { cameraSchema } from '../config/camera.js'
import { GantryError } from '../errors.js'
import { unlessAborted } from '../lifecycle/delay.js'
import { LoopingRtspServer } from '../tools/rtsp-server/looping-rtsp-server.js'

export class FootageMissingError extends GantryError {
  readonly code = 'GANTRY_ENVIRONMENT'
  readonly hint = 'Fetch the whole repository, large files included; the clips lie in pipelines/demo/clips.'
  constructor(folder: string) {
    super(`there is no clip in ${folder}`)
    this.name = 'FootageMissingError'
  }
}

type CameraSettings = z.input<typeof cameraSchema>

/**
 * Serves the clips of a folder as `count` looping RTSP cameras on a free loopback port; with more cameras than clips, clips are shown
 * again.
 *
 * @param signal - ends the start.
 * @throws FootageMissingError; what ffmpeg says of a clip it cannot play; the reason of the signal.
 */
export async function startDemoCameras(
  folder: string,
  count: number,
  signal: AbortSignal,
): Promise<{ server: LoopingRtspServer; cameras: CameraSettings[] }> {
  const clips = clipsIn(folder)
  const server = new LoopingRtspServer()
  try {
    await server.start()
    const cameras: CameraSettings[] = []
    for (let index = 0; index < count; index += 1) {
      const clip = clips[index % clips.length] ?? ''
      const id = `${basename(clip, '.mp4')}-${Math.floor(index / clips.length) + 1}`
      await unlessAborted(server.addStream(`/${id}`, clip), signal)
      cameras.push({ id, url: server.url(`/${id}`) })
    }
    return { server, cameras }
  } catch (error) {
    await server.stop()
    throw error
  }
}

function clipsIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => name.endsWith('.mp4'))
  if (names.length === 0) throw new FootageMissingError(folder)
  return names.sort().map((name) => join(folder, name))
}
