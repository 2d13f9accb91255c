/** The most wanted first. */
export const parts = ['ceilings', 'scheduler', 'service', 'server', 'faults'] as const
export type Part = (typeof parts)[number]

/** Longest that a run spends on a part, on a card that is paid by the minute: 12 minutes in all. */
export const partSeconds: Readonly<Record<Part, number>> = {
  ceilings: 150,
  scheduler: 180,
  service: 240,
  server: 75,
  faults: 75,
}

/** The detectors that are measured, by their names in the repository of `models.ts`. */
export const gpuModels = ['fp32_416', 'fp16_416', 'fp32_800', 'fp16_800'] as const
export type GpuModel = (typeof gpuModels)[number]

/** Where a measurement stands in the results: rows of one name are one row of the table. */
export type Place = Readonly<{ row: string; column?: string }>

type Common = Readonly<{
  /** How long it is looked at. */
  seconds: number
  /** What it takes in all on a card, as far as is known; with less left of its part it is not begun. */
  usualSeconds: number
}>

/**
 * - `naive`: one frame at a time through the detector of the cameras, in one thread
 * - `bare`: onnxruntime-node and nothing around it
 * - `bound`: ONNX Runtime from Python, with inputs and outputs that stay on the card
 */
export type CeilingJob = Common &
  Readonly<{ kind: 'naive' | 'bare' | 'bound'; model: GpuModel; batch: number; sessions: number }>

/** The detector of the cameras, saturated, and bare sessions in turn. Without a batch and instances: as the defaults are. */
export type SchedulerJob = Common &
  Readonly<{
    kind: 'scheduler'
    model: GpuModel
    /** Most frames in one run, and how many of them run side by side. */
    load?: Readonly<{ batch: number; instances: number }>
    /** Sizes of batches: the ladder that is made by itself, or the largest alone. */
    sizes: 'ladder' | 'one'
  }>

export type ServiceJob = Common &
  Readonly<{
    kind: 'service'
    model: GpuModel
    cameras: number
    fps: number
    maxBatchSize?: number
    /** Decoding on the card, and what of the rest is done there; absent: software. */
    onCard?: 'decoding' | 'scaling'
  }>

/** The most cameras of 1920x1080 that a service holds. */
export type MostJob = Common &
  Readonly<{ kind: 'most'; model: GpuModel; fps: number; from: number; most: number }>

/** Clients of the model server, by HTTP and by gRPC. */
export type ServerJob = Common &
  Readonly<{
    kind: 'server'
    model: GpuModel
    loads: readonly Readonly<{ clients: number; batch: number }>[]
  }>

/**
 * - `kill`: `kill -9` of the engine
 * - `absent`: a device that is not there; `absent-cpu`: with the CPU behind it
 * - `full`: next to no memory of the card is free at the start; `fills`: from a moment on while it runs
 */
export type Fault = 'kill' | 'absent' | 'absent-cpu' | 'full' | 'fills'
export type FaultJob = Common & Readonly<{ kind: 'fault'; fault: Fault; model: GpuModel; cameras: number }>

export type Job = CeilingJob | SchedulerJob | ServiceJob | MostJob | ServerJob | FaultJob

export const protocols = ['HTTP', 'gRPC'] as const

/** `fp16 800 x 448` of `fp16_800`. */
export function modelText(model: GpuModel): string {
  const [type, width] = model.split('_')
  return `${type} ${width} x ${width === '416' ? '416' : '448'}`
}

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`

/** Where the figures of a job stand; it has been taken when all of them do. */
export function placesOf(job: Job): readonly Place[] {
  const model = modelText(job.model)
  switch (job.kind) {
    case 'naive':
      return [{ row: `naive: one frame at a time, ${model}` }]
    case 'bare': {
      const side = job.sessions === 1 ? '' : `, ${job.sessions} sessions`
      return [{ row: `bare onnxruntime-node, ${model}${side}`, column: `batch ${job.batch}` }]
    }
    case 'bound':
      return [{ row: `data on the card (Python, IO binding), ${model}`, column: `batch ${job.batch}` }]
    case 'scheduler': {
      const { load, sizes } = job
      const of = load ? `batch ${load.batch}, ${plural(load.instances, 'instance')}` : 'as the defaults are'
      return [{ row: `saturated scheduler, ${model}, ${of}${sizes === 'one' ? ', one size' : ''}` }]
    }
    case 'service': {
      const more = `${job.maxBatchSize === undefined ? '' : `, batches of ${job.maxBatchSize}`}${onCardTexts[job.onCard ?? 'nothing']}`
      return [{ row: `service, ${model}, ${plural(job.cameras, 'camera')} at ${job.fps} fps${more}` }]
    }
    case 'most':
      return [{ row: `most 1080p cameras at ${job.fps} fps with p99 <= 100 ms, ${model}` }]
    case 'server':
      return job.loads.flatMap(({ clients, batch }) =>
        protocols.map((protocol) => ({
          row: `model server, ${model}, ${plural(clients, 'client')}, ${batch === 1 ? 'one picture each' : `batches of ${batch}`}`,
          column: protocol,
        })),
      )
    case 'fault':
      return [{ row: `${faultTexts[job.fault]}, ${model}` }]
    default:
      return job satisfies never
  }
}

/** Rows that differ in it alone are compared. */
export const onCardTexts = { nothing: '', decoding: ', NVDEC', scaling: ', NVDEC, scaled there' } as const

const faultTexts: Readonly<Record<Fault, string>> = {
  kill: 'kill -9 of the engine',
  absent: 'a device that is not there',
  'absent-cpu': 'a device that is not there, the CPU behind it',
  full: 'the card full at the start',
  fills: 'the card fills while it runs',
}

export function nameOf({ row, column }: Place): string {
  return column === undefined ? row : `${row}, ${column}`
}

/** @param form - `short`: small sizes and moments, for a machine without a card, to see that it runs to its end. */
export function jobsOf(part: Part, form: 'full' | 'short'): readonly Job[] {
  return form === 'full' ? full[part] : short[part]
}

function ceiling(
  kind: CeilingJob['kind'],
  model: GpuModel,
  batch: number,
  sessions = 1,
  seconds = 1,
): CeilingJob {
  const usualSeconds = seconds + planSeconds(model) + 2 + sessions
  return { kind, model, batch, sessions, seconds, usualSeconds }
}

function scheduled(
  model: GpuModel,
  sizes: SchedulerJob['sizes'],
  load?: SchedulerJob['load'],
  seconds = 2,
): SchedulerJob {
  // A plan of each size, for each instance and for the sessions beside them; those start side by side.
  const plans = planSeconds(model) * (sizes === 'one' ? 2 : 5)
  const usualSeconds = 5 * seconds + plans + (load?.instances ?? 1)
  return { kind: 'scheduler', model, sizes, ...(load && { load }), seconds, usualSeconds }
}

/** What a card is busy for with a shape that it sees for the first time. */
function planSeconds(model: GpuModel): number {
  return model.startsWith('fp16') ? 3.5 : 1.5
}

function served(
  model: GpuModel,
  cameras: number,
  fps: number,
  more: Pick<ServiceJob, 'maxBatchSize' | 'onCard'> = {},
): ServiceJob {
  return { kind: 'service', model, cameras, fps, ...more, seconds: 8, usualSeconds: 28 }
}

function most(model: GpuModel, fps: number, from: number, limit: number): MostJob {
  return { kind: 'most', model, fps, from, most: limit, seconds: 6, usualSeconds: 75 }
}

function asked(model: GpuModel, usualSeconds: number, ...loads: ServerJob['loads']): ServerJob {
  return { kind: 'server', model, loads, seconds: 4, usualSeconds }
}

function fault(kind: Fault, usualSeconds: number): FaultJob {
  return { kind: 'fault', fault: kind, model: 'fp32_800', cameras: 8, seconds: 4, usualSeconds }
}

const batches = [1, 8, 32]

const full: Readonly<Record<Part, readonly Job[]>> = {
  ceilings: [
    ceiling('naive', 'fp32_416', 1),
    ceiling('naive', 'fp32_800', 1),
    ...gpuModels.flatMap((model) => batches.map((batch) => ceiling('bare', model, batch))),
    ...gpuModels.flatMap((model) => batches.map((batch) => ceiling('bound', model, batch))),
    ceiling('bare', 'fp16_416', 32, 4),
    ceiling('bare', 'fp16_800', 32, 4),
    ceiling('naive', 'fp16_416', 1),
    ceiling('naive', 'fp16_800', 1),
  ],
  scheduler: [
    scheduled('fp16_416', 'one', { batch: 32, instances: 4 }),
    scheduled('fp32_416', 'one', { batch: 32, instances: 1 }),
    scheduled('fp32_800', 'ladder'),
    scheduled('fp16_800', 'one', { batch: 16, instances: 4 }),
    scheduled('fp16_416', 'one', { batch: 32, instances: 1 }),
    scheduled('fp16_800', 'one', { batch: 16, instances: 1 }),
    scheduled('fp16_416', 'ladder', { batch: 32, instances: 1 }),
    scheduled('fp32_800', 'one', { batch: 16, instances: 1 }),
    scheduled('fp32_416', 'one', { batch: 32, instances: 4 }),
    scheduled('fp32_800', 'one', { batch: 16, instances: 4 }),
    scheduled('fp16_416', 'one', { batch: 32, instances: 2 }),
    scheduled('fp16_416', 'one', { batch: 8, instances: 1 }),
    scheduled('fp16_416', 'ladder', { batch: 32, instances: 4 }),
  ],
  service: [
    served('fp16_800', 64, 5, { maxBatchSize: 16 }),
    served('fp16_800', 64, 15, { maxBatchSize: 16 }),
    most('fp16_800', 5, 64, 128),
    served('fp32_800', 16, 5),
    served('fp32_800', 16, 5, { onCard: 'scaling' }),
    served('fp32_800', 16, 5, { onCard: 'decoding' }),
    served('fp32_800', 4, 5),
    served('fp32_416', 64, 5, { maxBatchSize: 16 }),
  ],
  server: [
    asked('fp32_416', 40, { clients: 64, batch: 1 }, { clients: 8, batch: 32 }),
    asked('fp16_416', 32, { clients: 64, batch: 1 }),
  ],
  faults: [
    fault('kill', 20),
    fault('full', 20),
    fault('absent', 8),
    fault('absent-cpu', 8),
    fault('fills', 20),
  ],
}

const moment = 0.3

const short: Readonly<Record<Part, readonly Job[]>> = {
  ceilings: [
    ceiling('naive', 'fp32_416', 1, 1, moment),
    ceiling('bare', 'fp32_416', 1, 1, moment),
    ceiling('bare', 'fp16_416', 1, 1, moment),
    ceiling('bound', 'fp32_416', 1, 1, moment),
  ],
  scheduler: [
    scheduled('fp32_416', 'one', { batch: 2, instances: 1 }, moment),
    scheduled('fp32_416', 'ladder', undefined, moment),
  ],
  service: [
    { ...served('fp32_416', 2, 2), seconds: 3 },
    { ...served('fp32_416', 2, 2, { onCard: 'scaling' }), seconds: 3 },
    { ...served('fp32_416', 2, 2, { onCard: 'decoding' }), seconds: 3 },
    { ...most('fp32_416', 1, 2, 4), seconds: 3 },
  ],
  server: [{ ...asked('fp32_416', 30, { clients: 4, batch: 1 }, { clients: 2, batch: 4 }), seconds: 2 }],
  faults: (['kill', 'full', 'absent', 'absent-cpu', 'fills'] as const).map((kind): FaultJob => ({
    ...fault(kind, 15),
    model: 'fp32_416',
    cameras: 1,
    seconds: 2,
  })),
}
