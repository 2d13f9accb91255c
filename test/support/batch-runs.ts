import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { GantryError } from '../../src/errors.js'
import type { BatchLine } from '../../src/messages/batch-line.js'
import type { BatchOptions, OpenedScorer } from '../../src/tools/batch/run-batch.js'
import { S3Store } from '../../src/tools/batch/inputs/s3-store.js'
import { outputTarget } from '../../src/tools/batch/outputs/output-target.js'
import type { Picture, ScoredPicture } from '../../src/tools/scoring/picture-scorer.js'
import { silentLog } from './silent-log.js'

/** Files named as pictures, with bytes of their own, in a folder and one below it. */
export function makePictures(folder: string, count: number): string {
  mkdirSync(join(folder, 'below'), { recursive: true })
  for (let index = 1; index <= count; index += 1)
    writeFileSync(join(folder, index % 3 === 0 ? 'below' : '.', `${index}.jpg`), `picture ${index}`)
  return folder
}

/** Finds as many things as a hash of the bytes says, and decodes nothing. */
export function scoreBytes(picture: Picture): ScoredPicture {
  const bytes = picture.kind === 'file' ? picture.bytes : picture.rgbHwc
  const score = createHash('sha256').update(bytes).digest().readUInt32BE() / 2 ** 32
  const boxPx = { x1: 0, y1: 0, x2: 1, y2: 1 }
  return {
    size: { widthPx: 8, heightPx: 8 },
    detections: Array.from({ length: Math.floor(score * 4) }, () => ({ label: 'a', score, boxPx })),
    decodeMs: 0,
    inferMs: 0,
  }
}

export function bytesScorer(
  score: (picture: Picture) => Promise<ScoredPicture> | ScoredPicture = scoreBytes,
  print = '0',
): OpenedScorer {
  return {
    scorer: {
      info: { name: 'bytes:1', labels: ['a'], where: 'here', input: '', atOnce: 4 },
      score: async (picture) => score(picture),
      stop: () => Promise.resolve(),
    },
    model: { name: 'bytes', version: '1' },
    inputPx: { widthPx: 64, heightPx: 64 },
    print,
  }
}

type Given = Readonly<{ inputs: readonly string[]; out: string }> &
  Partial<Omit<BatchOptions, 'inputs' | 'out' | 'openScorer' | 'deps'>> &
  Readonly<{ scorer?: OpenedScorer; stdin?: string; env?: Readonly<Record<string, string>>; format?: string }>

/** What `runBatch` is given, with a scorer that only reads bytes. */
export function batchOptions({ scorer, stdin, env, format, ...given }: Given): BatchOptions {
  const signal = given.signal ?? new AbortController().signal
  return {
    target: outputTarget(given.out, format),
    stateDir: `${given.out}.batch`,
    errorsPath: `${given.out}.errors.jsonl`,
    restart: false,
    sampleFps: 5,
    parallel: undefined,
    patienceMs: 1_000,
    commitEveryMs: 100,
    settings: {},
    openScorer: () => Promise.resolve(scorer ?? bytesScorer()),
    deps: { stdin: Readable.from([stdin ?? '']), s3: () => new S3Store(env ?? {}, signal) },
    log: silentLog(),
    listed: () => undefined,
    progress: () => undefined,
    ...given,
    signal,
  }
}

export function jsonLines(path: string): BatchLine[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as BatchLine)
}

export function itemsOf(path: string): string[] {
  return jsonLines(path).map(({ item }) => item)
}

/** As from a server that is started anew. */
export class ServerAwayError extends GantryError {
  readonly code = 'GANTRY_MODEL_SERVER'
  readonly hint = 'Start the server.'
  override readonly retryable = true
  constructor() {
    super('no server answers')
  }
}
