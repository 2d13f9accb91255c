import { z } from 'zod'
import { EncodingError, readTextFile } from '../../config/text-file.js'
import { byTrueName } from '../../lifecycle/system-limit.js'
import { OptimizeSettingError } from './optimize-errors.js'

/** When pictures of cameras came, in milliseconds from the first, in order. */
export type ArrivalTrace = Readonly<{
  cameras: readonly string[]
  atMs: readonly number[]
  seconds: number
}>

const traceSchema = z.strictObject({
  gantryTrace: z.literal(1),
  cameras: z.array(z.string()),
  seconds: z.number().positive(),
  atMs: z.array(z.number().min(0)).min(2),
})

/** Fewer tell nothing of how they come. */
const leastArrivals = 10

/** A picture of a camera that was analysed, as the stream tells it. */
export type SeenPicture = Readonly<{ cameraId: string; seq: number; capturedAtMs: number }>

/**
 * Times at which pictures came, from what was told of those that were analysed. Of those that were not, which are missing in the numbers of
 * a camera, the times are taken as evenly spread between those around them.
 *
 * @throws OptimizeSettingError where there are too few
 */
export function traceOf(seen: readonly SeenPicture[]): ArrivalTrace {
  const byCamera = new Map<string, SeenPicture[]>()
  for (const picture of seen) {
    const known = byCamera.get(picture.cameraId)
    if (known === undefined) byCamera.set(picture.cameraId, [picture])
    else known.push(picture)
  }
  const times = [...byCamera.values()].flatMap((pictures) => timesOf(pictures)).sort((a, b) => a - b)
  const [first = 0, last = 0] = [times[0], times.at(-1)]
  if (times.length < leastArrivals || last <= first)
    throw new OptimizeSettingError(
      `only ${times.length} pictures came while arrivals were recorded`,
      'Let cameras run, record longer with --trace-seconds, or name a recorded file with --trace.',
    )
  return {
    cameras: [...byCamera.keys()].sort(),
    atMs: times.map((time) => Math.round((time - first) * 1e3) / 1e3),
    seconds: (last - first) / 1e3,
  }
}

/** Numbers that a camera leaves out are pictures, unless it began anew. */
const mostMissing = 100

function timesOf(pictures: readonly SeenPicture[]): readonly number[] {
  const inOrder = [...pictures].sort((a, b) => a.seq - b.seq)
  return inOrder.flatMap(({ seq, capturedAtMs }, index) => {
    const before = inOrder[index - 1]
    const missing = before === undefined ? 0 : seq - before.seq - 1
    if (before === undefined || missing <= 0 || missing > mostMissing) return [capturedAtMs]
    const gap = (capturedAtMs - before.capturedAtMs) / (missing + 1)
    const between = Array.from({ length: missing }, (_, at) => before.capturedAtMs + (at + 1) * gap)
    return [...between, capturedAtMs]
  })
}

/** Milliseconds between one and the next, going round: the last is followed by the first after a usual gap. */
export function gapsOf({ atMs }: ArrivalTrace): readonly number[] {
  const gaps = atMs.slice(1).map((at, index) => at - atMs[index]!)
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  return [...gaps, mean]
}

/** @returns the text of a file that {@link readTrace} reads. */
export function traceText(trace: ArrivalTrace): string {
  return `${JSON.stringify({ gantryTrace: 1, ...trace })}\n`
}

/** @throws OptimizeSettingError; SystemLimitError */
export function readTrace(path: string): ArrivalTrace {
  const wrong = (why: string) =>
    new OptimizeSettingError(
      `--trace ${path}: ${why}`,
      'Record one with `gantry optimize --trace URL`, which keeps it as trace.json in the folder of --work.',
    )
  let text: string
  try {
    text = readTextFile(path)
  } catch (error) {
    if (error instanceof EncodingError) throw wrong(error.message)
    throw byTrueName(`${path} cannot be read`, error)
  }
  let parsed
  try {
    parsed = traceSchema.safeParse(JSON.parse(text))
  } catch {
    throw wrong('it is no JSON')
  }
  if (!parsed.success) throw wrong('it is no recorded trace')
  const { gantryTrace: _, ...trace } = parsed.data
  if (trace.atMs.some((at, index) => index > 0 && at < trace.atMs[index - 1]!))
    throw wrong('its times are not in order')
  return trace
}
