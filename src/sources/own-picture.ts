import type { CameraConfig } from '../config/camera.js'
import type { SentPictureSource } from '../vision/frame-source.js'
import { KeyFrameReplay } from './key-frame-replay.js'
import { askedFormats, stillAsJpeg } from './still.js'
import { takeWholePicture, wholeQuality, type WholePicture } from './whole-picture.js'

/**
 * The picture that a camera sent, at its own resolution.
 *
 * @returns `undefined` where it cannot be decoded by itself.
 * @throws ImageInvalidError, ImageTooLargeError; what the signal aborts with; what the system has against a decoder.
 */
export async function ownPictureOf(
  sent: SentPictureSource,
  camera: CameraConfig,
  signal: AbortSignal,
): Promise<WholePicture | undefined> {
  switch (sent.kind) {
    case 'still':
      return stillAsJpeg(sent.bytes, camera, wholeQuality, askedFormats)
    case 'file': {
      const input = { kind: 'file', path: sent.path } as const
      return pictureIn(await takeWholePicture({ input, gate: undefined }, camera, signal, sent.atS))
    }
    case 'packets': {
      const gate = await KeyFrameReplay.open({ ...sent, atMs: sent.capturedAtMs })
      try {
        const input = { kind: 'rtsp', url: gate.url, transport: 'tcp' } as const
        return pictureIn(await takeWholePicture({ input, gate }, camera, signal))
      } finally {
        await gate.close()
      }
    }
    default:
      return sent satisfies never
  }
}

function pictureIn(taken: Awaited<ReturnType<typeof takeWholePicture>>): WholePicture | undefined {
  return 'reason' in taken ? undefined : taken
}
