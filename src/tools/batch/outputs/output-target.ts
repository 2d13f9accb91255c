import { basename, extname } from 'node:path'
import { kafkaSchema, type KafkaConfig } from '../../../config/outputs.js'
import { isS3Url, isS3UrlFault, parseS3Url, type S3Place } from '../../../config/s3-url.js'
import { BatchInputError } from '../batch-errors.js'
import { type FileFormat, fileFormats } from './file-output.js'

/** Where results go. */
export type OutputTarget =
  | Readonly<{
      kind: 'file'
      /** Where it is written; of an object, a name in the folder of the run. */
      path: string
      format: FileFormat
      /** The object that it becomes when the run is done. */
      object?: S3Place
    }>
  | Readonly<{ kind: 'kafka'; config: KafkaConfig }>

const formatOfEnd: Readonly<Record<string, FileFormat>> = {
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.csv': 'csv',
  '.json': 'coco',
  '.parquet': 'parquet',
}

const ends = '.jsonl, .csv, .json (COCO) or .parquet'

/**
 * @param out - a file, whose end says its format, or `s3://BUCKET/KEY` with the same ends; `kafka://HOST:PORT[,HOST:PORT]/TOPIC`; or `kafka`: the broker of the pipeline file.
 * @param format - goes before what the end of the file says.
 * @param ofPipeline - `sinks.kafka` of the pipeline file.
 * @throws BatchInputError
 */
export function outputTarget(out: string, format?: string, ofPipeline?: KafkaConfig): OutputTarget {
  if (out === 'kafka' || out.startsWith('kafka://'))
    return { kind: 'kafka', config: kafkaOf(out, ofPipeline) }
  if (format !== undefined && !isFormat(format))
    throw new BatchInputError(`--format is "${format}"`, `Use one of ${fileFormats.join(', ')}.`)
  const chosen = format ?? formatOfEnd[extname(out).toLowerCase()]
  if (chosen === undefined)
    throw new BatchInputError(
      `the end of "${out}" names no format`,
      `Let --out end in ${ends}, or give --format.`,
    )
  return isS3Url(out)
    ? { kind: 'file', path: basename(out), format: chosen, object: objectOf(out) }
    : { kind: 'file', path: out, format: chosen }
}

/** @throws BatchInputError */
function objectOf(out: string): S3Place {
  const place = parseS3Url(out)
  if (isS3UrlFault(place)) throw new BatchInputError(`--out ${place.message}`, 'Write s3://BUCKET/KEY.')
  return place
}

function isFormat(text: string): text is FileFormat {
  return (fileFormats as readonly string[]).includes(text)
}

function kafkaOf(out: string, ofPipeline: KafkaConfig | undefined): KafkaConfig {
  if (out === 'kafka') {
    if (ofPipeline !== undefined) return ofPipeline
    throw new BatchInputError(
      '--out kafka takes the brokers of a pipeline file, and none are set',
      'Name a file with sinks.kafka by -c, or write --out kafka://HOST:PORT/TOPIC.',
    )
  }
  const [, brokers = '', topic] = /^kafka:\/\/([^/]+)(?:\/(.+))?$/.exec(out) ?? []
  const given = ofPipeline ?? {}
  const parsed = kafkaSchema.safeParse({
    ...given,
    brokers: brokers.split(','),
    topics: topic === undefined ? (ofPipeline?.topics ?? {}) : { detections: topic },
  })
  if (parsed.success) return parsed.data
  throw new BatchInputError(
    `--out ${out}: ${parsed.error.issues[0]?.message ?? 'not understood'}`,
    'Write kafka://HOST:PORT/TOPIC, several brokers with commas.',
  )
}
