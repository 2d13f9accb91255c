// GPUs that are not there: `cuda` runs on the CPU, and does what a card would do by the variables of the environment.
//
// As CUDA plans, a session is charged for each change of its input shapes. Every run is written to the file $SHAPES_FILE, if that is set:
// {"session", "shapes", "changed"}. There is memory for $MOST_SESSIONS sessions in each thread, and for batches of $MOST_ROWS; where $AS_FILED is
// set models are taken from files alone. Models that hold the text $SLOW_MARK take 30 ms longer for each run, and those with $UNFIT_MARK compute
// with what the card lacks. What native code would say is in $CARD_OPENS for a session that is opened, and in $CARD_RUNS for a run. The file
// $CARD_MIB has the memory in use on the card, in MiB: a session takes 100 when it is opened, and 10 for each row of its first run.
//
// Where $VIRTUAL_GPUS is set there are as many GPUs as that folder has files `0`, `1` and so on, which tell in JSON how each does:
//   {}                 well
//   { "fault": 700 }   a run fails with that error of CUDA. It sticks, as the context is the process's: from then on every run and every
//                      session on that GPU fails in that process, also when the file says otherwise again
//   { "slowMs": 20 }   a run takes that much longer
// Each run adds a byte to the file `runs-0`.
import fs from 'node:fs'
import { join } from 'node:path'
import { threadId } from 'node:worker_threads'

const chargeMs = 20
const markedMs = 30
const texts = {
  2: 'out of memory',
  101: 'invalid device ordinal',
  700: 'an illegal memory access was encountered',
  719: 'unspecified launch failure',
  999: 'unknown error',
}

function failure(code) {
  const place = '/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:129'
  // CUDA names GPU 0 whichever fails.
  return new Error(
    `${place} CUDA failure ${code}: ${texts[code]} ; GPU=0 ; hostname=virtual ; file=/onnxruntime_src/x.cc ; line=84 ; expr=cudaStreamSynchronize(stream);`,
  )
}

/** How a GPU does. @throws as CUDA does where it is not there, or has failed in this process */
function stateOf(gpu) {
  const folder = process.env.VIRTUAL_GPUS
  if (!folder) return {}
  if (!fs.existsSync(join(folder, String(gpu)))) throw failure(101)
  const broken = join(folder, `broken-${gpu}-in-${process.pid}`)
  if (fs.existsSync(broken)) throw failure(Number(fs.readFileSync(broken, 'utf8')))
  return JSON.parse(fs.readFileSync(join(folder, String(gpu)), 'utf8'))
}

/** @throws the fault that it is told to have */
function beginRun(gpu) {
  const folder = process.env.VIRTUAL_GPUS
  const { fault, slowMs = 0 } = stateOf(gpu)
  if (fault === undefined) {
    if (folder) fs.appendFileSync(join(folder, `runs-${gpu}`), '.')
    return slowMs
  }
  fs.writeFileSync(join(folder, `broken-${gpu}-in-${process.pid}`), String(fault))
  throw failure(fault)
}

function take(mib) {
  const file = process.env.CARD_MIB
  if (file) fs.writeFileSync(file, String(Number(fs.readFileSync(file, 'utf8')) + mib))
}

function wait(ms) {
  if (ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

let sessions = 0

/** Gives them to a runtime. @param ort - the module onnxruntime-node. */
export function addSimulatedGpus(ort) {
  const { create } = ort.InferenceSession
  ort.InferenceSession.create = async (model, options) => {
    const [provider] = options.executionProviders
    if ((provider.name ?? provider) !== 'cuda') return create.call(ort.InferenceSession, model, options)
    const gpu = provider.deviceId
    stateOf(gpu)
    if (process.env.CARD_OPENS) throw new Error(process.env.CARD_OPENS)
    if (sessions >= Number(process.env.MOST_SESSIONS ?? Infinity)) throw failure(2)
    if (process.env.AS_FILED && typeof model !== 'string') throw new Error('no kernel for TopK')
    const onCpu = { ...options, executionProviders: ['cpu'] }
    const session = await create.call(ort.InferenceSession, model, onCpu)
    const id = `${threadId}-${sessions++}`
    take(100)
    const { SLOW_MARK, UNFIT_MARK } = process.env
    const bytes =
      SLOW_MARK || UNFIT_MARK
        ? Buffer.from(typeof model === 'string' ? fs.readFileSync(model) : model)
        : undefined
    const usualMs = SLOW_MARK && bytes.includes(SLOW_MARK) ? markedMs : 0
    const isUnfit = Boolean(UNFIT_MARK) && bytes.includes(UNFIT_MARK)
    let last
    const run = session.run.bind(session)
    session.run = async (feeds, ...rest) => {
      const slowMs = beginRun(gpu)
      if (process.env.CARD_RUNS) throw new Error(process.env.CARD_RUNS)
      if (isUnfit) throw new Error('CUBLAS failure 8: CUBLAS_STATUS_ARCH_MISMATCH ; GPU=0')
      const [rows = 0] = Object.values(feeds)[0]?.dims ?? []
      if (rows > Number(process.env.MOST_ROWS ?? Infinity)) throw failure(2)
      const shapes = Object.entries(feeds).map(([name, tensor]) => `${name} ${tensor.dims.join('x')}`)
      const key = shapes.sort().join(', ')
      wait(slowMs + usualMs + (key === last ? 0 : chargeMs))
      const line = { session: id, shapes: key, changed: key !== last }
      if (process.env.SHAPES_FILE) fs.appendFileSync(process.env.SHAPES_FILE, `${JSON.stringify(line)}\n`)
      if (last === undefined) take(10 * rows)
      last = key
      return run(feeds, ...rest)
    }
    return session
  }
}
