import type { CameraDirectory } from '../../cameras/camera-directory.js'
import type { CameraConfig } from '../../config/camera.js'
import { analysedUrl } from '../../config/camera-url-settings.js'
import { schemeOf } from '../../config/camera-url-syntax.js'
import type { CameraShapes } from '../../detector/input-size.js'
import { atMost } from '../../lifecycle/delay.js'
import { silentLog } from '../../lifecycle/log.js'
import { AddressPolicy } from '../../lifecycle/address-policy.js'
import { ConnectGate } from '../../sources/connect-gate.js'
import type { SizePx } from '../../vision/letterbox.js'

/** Cameras that are opened: more would tell little more, and each costs the start a decoder. */
const mostLooks = 8
const looksAtMostMs = 1_500

/**
 * What shape the analysed parts of the cameras' pictures have: opens the first of those that are switched on, side by side, until each has
 * given a picture or failed. Never rejects.
 *
 * @param atMostMs - for all of them together; what is known then counts.
 */
export async function lookAtCameras(
  directory: CameraDirectory,
  atMostMs = looksAtMostMs,
): Promise<CameraShapes> {
  const cameras = [...directory].map(({ config }) => config).filter(({ enabled }) => enabled)
  const pulled = cameras.filter((camera) => schemeOf(analysedUrl(camera)) !== 'push').slice(0, mostLooks)
  const pictures: SizePx[] = []
  if (pulled.length > 0) await atMost(atMostMs, look(pulled, directory, pictures, atMostMs))
  return { pictures: [...pictures], cameras: cameras.length }
}

async function look(
  cameras: readonly CameraConfig[],
  directory: CameraDirectory,
  pictures: SizePx[],
  atMostMs: number,
): Promise<void> {
  // Decoders belong to engines: this process has none of their code unless it comes to this.
  const { firstPicture } = await import('../../sources/first-picture.js')
  const { mediaRoot, cameraNetworks } = directory.deps
  const connectGate = new ConnectGate(mostLooks)
  const looks = cameras.map((camera) => {
    const loopbackClosed = directory.loopbackClosedFor(camera.id, analysedUrl(camera))
    const addresses = new AddressPolicy({ ...cameraNetworks, loopbackClosed })
    // What is wrong with a camera is told by the engine that opens it.
    const setting = { mediaRoot, addresses, connectGate, log: silentLog() }
    return firstPicture(camera, setting, { withinMs: atMostMs }, (first) => {
      if (!('source' in first)) return
      const { widthPx, heightPx } = first.regionPx
      pictures.push({ widthPx, heightPx })
    })
  })
  await Promise.allSettled(looks)
}
