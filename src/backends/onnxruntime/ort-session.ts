import ort from './onnxruntime.js'
import type { ExecutionProvider } from '../../config/inference.js'
import { systemLimitIn, SystemLimitError } from '../../lifecycle/system-limit.js'
import { ModelInvalidError } from '../../repository/errors.js'
import type { GraphOptimization } from '../../repository/model-config.js'
import { providerFailure } from './provider-failure.js'
import { ProviderUnavailableError, type ProviderNote } from './provider-notes.js'
import { missingProviderReason } from './providers.js'

/** Only worker threads import this file: a run blocks its thread. */

export type OrtSessionOptions = Readonly<{
  path: string
  /** Tried in this order. */
  providers: readonly ExecutionProvider[]
  /** GPU number, for cuda and tensorrt. */
  deviceId: number
  /** Threads of one run, on CPU. */
  intraOpThreads: number
  graphOptimization: GraphOptimization
  /** Threads between operators; 1 without it. They work only with `parallelExecution`. */
  interOpThreads?: number
  parallelExecution?: boolean
  memoryArena?: boolean
  memoryPattern?: boolean
  /** ONNX Runtime's own session settings by their whole key, `session.*`. */
  sessionConfig?: Readonly<Record<string, string>>
}>

export type OpenedSession = Readonly<{
  session: ort.InferenceSession
  provider: ExecutionProvider
  /** Why each provider before it does not run. */
  notes: readonly ProviderNote[]
}>

/**
 * Opens a model on the first provider that takes it.
 *
 * @throws ProviderUnavailableError if none does; ModelInvalidError if the CPU provider refuses the model itself;
 *   SystemLimitError if a limit of the system keeps it from being loaded.
 */
export async function openOrtSession(options: OrtSessionOptions): Promise<OpenedSession> {
  const notes: ProviderNote[] = []
  for (const provider of options.providers) {
    const missing = missingProviderReason(provider)
    if (missing !== undefined) {
      notes.push({ provider, reason: missing, installed: false })
      continue
    }
    try {
      const session = await ort.InferenceSession.create(options.path, sessionOptions(options, provider))
      return { session, provider, notes }
    } catch (error) {
      const reason = providerFailure(error, provider, options.deviceId)
      const limit = provider === 'cpu' ? systemLimitIn(reason) : undefined
      if (limit !== undefined)
        throw new SystemLimitError(`ONNX Runtime cannot load ${options.path}`, limit, error)
      if (provider === 'cpu')
        throw new ModelInvalidError(
          `ONNX Runtime cannot load ${options.path}: ${reason}`,
          'Check the model with `gantry models inspect`; export it with an opset this version of ONNX Runtime knows.',
          error,
        )
      notes.push({ provider, reason, installed: true })
    }
  }
  throw new ProviderUnavailableError(notes)
}

/** What a run threw; of a GPU without C++ and the name of the host, since clients see it. */
export function runFailure(error: unknown, provider: ExecutionProvider, deviceId: number): unknown {
  if (provider === 'cpu') return error
  return new Error(providerFailure(error, provider, deviceId), { cause: error })
}

function sessionOptions(
  options: OrtSessionOptions,
  provider: ExecutionProvider,
): ort.InferenceSession.SessionOptions {
  const onDevice = provider === 'cuda' || provider === 'tensorrt'
  return {
    executionProviders: [onDevice ? { name: provider, deviceId: options.deviceId } : provider],
    intraOpNumThreads: options.intraOpThreads,
    interOpNumThreads: options.interOpThreads ?? 1,
    graphOptimizationLevel: options.graphOptimization,
    logSeverityLevel: 3,
    ...(options.parallelExecution === true ? { executionMode: 'parallel' as const } : {}),
    ...(options.memoryArena === undefined ? {} : { enableCpuMemArena: options.memoryArena }),
    ...(options.memoryPattern === undefined ? {} : { enableMemPattern: options.memoryPattern }),
    // Threads that spin while they wait take the cores from the other instances: 153 against 82 CPU-ms per image.
    extra: { 'session.intra_op.allow_spinning': '0', ...options.sessionConfig },
  }
}
