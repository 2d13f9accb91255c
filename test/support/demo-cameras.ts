import { fileURLToPath } from 'node:url'
import { LoopingRtspServer } from '../../src/tools/rtsp-server/looping-rtsp-server.js'

/** A clip of the repository: people, helmets and a machine at a loading dock, 1280x720, 25 fps. */
export const dockClip = fileURLToPath(new URL('../../pipelines/demo/clips/dock.mp4', import.meta.url))

/** A loopback RTSP server with `count` streams `/cam1`, `/cam2` ... that loop the clip. */
export async function rtspCameras(count: number, clip = dockClip): Promise<LoopingRtspServer> {
  const server = new LoopingRtspServer()
  await server.start()
  for (let index = 1; index <= count; index += 1) await server.addStream(`/cam${index}`, clip)
  return server
}

/** Settings of cameras `cam-1`, `cam-2` ... on the streams of {@link rtspCameras}. @param sampleFps - frames per second and camera. */
export function cameraSettings(rtsp: LoopingRtspServer, count: number, sampleFps: number) {
  return Array.from({ length: count }, (_, index) => ({
    id: `cam-${index + 1}`,
    url: rtsp.url(`/cam${index + 1}`),
    sampleFps,
  }))
}
