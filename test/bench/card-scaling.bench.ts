/**
 * What it does to the boxes of the detector that a card scales pictures otherwise than the processor.
 *
 *     npm run build:server && npx tsx test/bench/card-scaling.bench.ts
 *
 * Without a card: its `scale_cuda`, bilinear, is the mean of the pixels that one covers, as swscale's `area` is, up to three a side. The clips
 * of the demo as they are and enlarged to 1920 x 1080, two pictures a second. `lost` of the boxes of the processor's pictures have no
 * partner, `other` are new; `right` of `labelled` and `wrong` are against the truth; `apart` is the mean difference of pixels, of 255.
 */
import { framesPerSecond, observed } from '../../sim/index.js'
import { cardLetterboxFilters, letterboxFilters } from '../../src/sources/geometry.js'
import type { Frame, FrameFormat } from '../../src/vision/frame.js'
import type { Detection } from '../../src/vision/detection.js'
import { type Tally, countAgainstTruth } from '../support/against-truth.js'
import { report } from './bench.js'
import { alone, ClipDetector, demoClip, demoSites } from './clip-detector.js'

const fps = 2
const sizes = [
  { name: '720p', before: [], source: { widthPx: 1280, heightPx: 720 } },
  { name: '1080p', before: ['scale=1920:1080:flags=lanczos'], source: { widthPx: 1920, heightPx: 1080 } },
] as const

function waysOf(format: FrameFormat): Readonly<Record<string, readonly string[]>> {
  const [scale = '', , , ...rest] = cardLetterboxFilters({}, format)
  const mean = scale.replace('scale_cuda=', 'scale=').replace(/:interp_algo=.*/, ':flags=area')
  return { processor: letterboxFilters({}, format), card: [mean, 'format=yuv444p', ...rest] }
}

function meanApart(one: ArrayBuffer, other: ArrayBuffer): number {
  const [a, b] = [new Uint8Array(one), new Uint8Array(other)]
  let sum = 0
  for (let at = 0; at < a.length; at += 1) sum += Math.abs(a[at]! - b[at]!)
  return sum / a.length
}

const detector = await ClipDetector.open()
try {
  for (const { name, before, source } of sizes) {
    /** By clip: those of the processor, which come first. */
    const plain = new Map<string, readonly Readonly<{ frame: Frame; found: readonly Detection[] }>[]>()
    for (const [way, scaling] of Object.entries(waysOf(detector.detector.info.format))) {
      const sum = { full: 0, lost: 0, other: 0, apart: 0, frames: 0 }
      const tallies = new Map<string, Tally>()
      for (const site of demoSites) {
        const truthAt = await observed(`demo-${site}`)
        const seen: Readonly<{ frame: Frame; found: readonly Detection[] }>[] = []
        for (const frame of detector.framesOf(demoClip(site), source, fps, [], [...before, ...scaling]))
          seen.push({ frame, found: await detector.detect(frame) })
        if (!plain.has(site)) plain.set(site, seen)
        for (const [at, { frame, found }] of seen.entries()) {
          const full = plain.get(site)![at]!
          sum.full += full.found.length
          sum.lost += alone(full.found, found)
          sum.other += alone(found, full.found)
          sum.apart += meanApart(frame.rgbHwc, full.frame.rgbHwc)
          sum.frames += 1
          if (before.length === 0)
            countAgainstTruth(found, truthAt(Math.round((frame.ptsMs * framesPerSecond) / 1e3)), tallies)
        }
      }
      const truth = [...tallies.values()]
      const total = (of: keyof Tally) => truth.reduce((all, tally) => all + tally[of], 0)
      report(`card-scaling ${way}, ${name}`, 'share', {
        lostShare: sum.lost / sum.full,
        otherShare: sum.other / sum.full,
        apart: sum.apart / sum.frames,
        full: sum.full,
        ...(before.length === 0 && {
          right: total('right'),
          wrong: total('wrong'),
          labelled: total('labelled'),
        }),
      })
    }
  }
} finally {
  await detector.stop()
}
