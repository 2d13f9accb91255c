import type { EngineResult } from '../../cameras/engine-report.js'
import { emptyFrameCounts, shedCauses, type FrameCounts } from '../../vision/accounting.js'
import { FieldReader, FieldWriter, listBytes, numberBytes, textBytes } from '../frame-fields.js'

/** Fields of one number beside the counts; those of `run` are 0 where there was none. */
const numbers = 9
const countsNames = ['received', 'inferred', 'reused', 'superseded', 'suspect', 'lost'] as const

/** A result as bytes between processes; its picture comes behind the fields. */
export function resultFields(result: EngineResult<string>): FieldWriter {
  const { cameraId, model, source, run, labels, decodeGapsMs, counts, text } = result
  const fields = new FieldWriter(
    (numbers + countsNames.length + shedCauses.length) * numberBytes +
      labels.reduce((sum, [label]) => sum + textBytes(label) + numberBytes, numberBytes) +
      listBytes(decodeGapsMs) +
      textBytes(cameraId) +
      textBytes(model) +
      textBytes(text),
  )
  fields.text(cameraId)
  fields.number(result.seq)
  fields.number(result.capturedAtMs)
  fields.number(result.arrivedMs)
  fields.number(source.widthPx)
  fields.number(source.heightPx)
  fields.text(model)
  fields.number(run?.batchSize ?? 0)
  fields.number(run?.timingsMs.queue ?? 0)
  fields.number(run?.timingsMs.infer ?? 0)
  fields.number(run?.timingsMs.postprocess ?? 0)
  for (const name of countsNames) fields.number(counts[name])
  for (const cause of shedCauses) fields.number(counts.shed[cause])
  fields.number(labels.length)
  for (const [label, detections] of labels) {
    fields.text(label)
    fields.number(detections)
  }
  fields.list(decodeGapsMs)
  fields.text(text)
  return fields
}

/** @returns views of `body`. @throws FrameError for what {@link resultFields} did not make. */
export function readResult(body: Buffer): EngineResult {
  const fields = new FieldReader(body)
  const cameraId = fields.text()
  const [seq, capturedAtMs, arrivedMs] = [fields.number(), fields.number(), fields.number()]
  const source = { widthPx: fields.number(), heightPx: fields.number() }
  const model = fields.text()
  const batchSize = fields.number()
  const timingsMs = { queue: fields.number(), infer: fields.number(), postprocess: fields.number() }
  const counts = readCounts(fields)
  const labels: [string, number][] = []
  for (let left = fields.number(); left > 0; left -= 1) labels.push([fields.text(), fields.number()])
  const decodeGapsMs = fields.list()
  const text = fields.bytes(fields.length())
  const picture = fields.rest()
  return {
    cameraId,
    seq,
    capturedAtMs,
    arrivedMs,
    source,
    model,
    ...(batchSize > 0 && { run: { timingsMs, batchSize } }),
    labels,
    decodeGapsMs,
    counts,
    text,
    ...(picture.length > 0 && { picture }),
  }
}

function readCounts(fields: FieldReader): FrameCounts {
  const counts = emptyFrameCounts()
  for (const name of countsNames) counts[name] = fields.number()
  for (const cause of shedCauses) counts.shed[cause] = fields.number()
  return counts
}
