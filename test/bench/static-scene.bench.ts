/**
 * What it costs to reuse results while the scene stands still: how many runs are saved, and how much the reused results miss.
 *
 *     npm run build:server && npx tsx test/bench/static-scene.bench.ts [minChange] [maxAgeMs] [clip...]
 *
 * Every frame of a clip, at 5 frames a second, goes through the detector, and through the very decision the engine makes. Where a
 * result would have been reused, its boxes are held against the detector's own for that frame: `missed` of these have no reused box
 * of their class with an IoU of 0.5, `stale` are reused boxes that stand for nothing.
 */
import { basename } from 'node:path'
import { cameraSchema } from '../../src/config/camera.js'
import { SceneReuse } from '../../src/processes/engine/scene-reuse.js'
import { report } from './bench.js'
import { alone, ClipDetector, demoClip, demoSites } from './clip-detector.js'

const fps = 5
const source = { widthPx: 1280, heightPx: 720 }
const [minChange = '10', maxAgeMs = '1000', ...given] = process.argv.slice(2)
const { staticScene } = cameraSchema.parse({
  id: 'bench',
  url: 'push:',
  staticScene: { minChange: Number(minChange), maxAgeMs: Number(maxAgeMs) },
})
if (!staticScene) throw new Error('no settings')

const detector = await ClipDetector.open()

for (const clip of given.length > 0 ? given : demoSites.map(demoClip)) {
  const reuse = new SceneReuse(staticScene, detector.detector.info.format.input)
  const sum = { frames: 0, reused: 0, objects: 0, missed: 0, boxes: 0, stale: 0 }
  for (const frame of detector.framesOf(clip, source, fps)) {
    const own = await detector.detect(frame)
    const reused = reuse.reusable(frame)
    sum.frames += 1
    if (reused === undefined) {
      reuse.analysed(frame, own)
      continue
    }
    sum.reused += 1
    sum.objects += own.length
    sum.missed += alone(own, reused.detections)
    sum.boxes += reused.detections.length
    sum.stale += alone(reused.detections, own)
  }
  report(`static-scene ${basename(clip)}`, 'share', {
    savedRuns: sum.reused / sum.frames,
    missedShare: sum.missed / Math.max(1, sum.objects),
    staleShare: sum.stale / Math.max(1, sum.boxes),
    ...sum,
    minChange,
    maxAgeMs,
  })
}
await detector.stop()
