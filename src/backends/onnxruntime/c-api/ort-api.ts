import '../onnxruntime.js'
import { join } from 'node:path'
import { onnxRuntimeBinaries } from '../providers.js'
import {
  type Argument,
  nativeCalls,
  type NativeCalls,
  type NativeFunction,
  type NativeLibrary,
  type Signature,
} from './native-calls.js'

/**
 * The version of `OrtApi` that is asked for. The structure only ever grows at its end, so that places hold for every later version too,
 * and a library gives no table to those who ask for a later one than its own.
 *
 * @see microsoft/onnxruntime, include/onnxruntime/core/session/onnxruntime_c_api.h
 */
const apiVersion = 23

const status = (...takes: Signature['takes']): Signature => ({ gives: 'address', takes })
const release: Signature = { gives: 'nothing', takes: ['address'] }

/**
 * Places in `OrtApi` of the functions that are used, with what they take; most give a status, which is 0 where all went well. The last
 * of them came with version 11.
 */
const functions = {
  CreateStatus: [0, status('int', 'text')],
  GetErrorCode: [1, { gives: 'int', takes: ['address'] }],
  GetErrorMessage: [2, { gives: 'text', takes: ['address'] }],
  CreateEnv: [3, status('int', 'text', 'memory')],
  CreateSession: [7, status('address', 'text', 'address', 'memory')],
  CreateSessionFromArray: [8, status('address', 'memory', 'size', 'address', 'memory')],
  Run: [9, status('address', 'address', 'memory', 'memory', 'size', 'memory', 'size', 'memory')],
  CreateSessionOptions: [10, status('memory')],
  SetSessionExecutionMode: [13, status('address', 'int')],
  EnableMemPattern: [16, status('address')],
  DisableMemPattern: [17, status('address')],
  EnableCpuMemArena: [18, status('address')],
  DisableCpuMemArena: [19, status('address')],
  SetSessionLogSeverityLevel: [22, status('address', 'int')],
  SetSessionGraphOptimizationLevel: [23, status('address', 'int')],
  SetIntraOpNumThreads: [24, status('address', 'int')],
  SetInterOpNumThreads: [25, status('address', 'int')],
  SessionGetInputCount: [30, status('address', 'memory')],
  SessionGetOutputCount: [31, status('address', 'memory')],
  SessionGetInputTypeInfo: [33, status('address', 'size', 'memory')],
  SessionGetOutputTypeInfo: [34, status('address', 'size', 'memory')],
  SessionGetInputName: [36, status('address', 'size', 'address', 'memory')],
  SessionGetOutputName: [37, status('address', 'size', 'address', 'memory')],
  CreateRunOptions: [39, status('memory')],
  CreateTensorAsOrtValue: [48, status('address', 'memory', 'size', 'int', 'memory')],
  CreateTensorWithDataAsOrtValue: [
    49,
    status('address', 'memory', 'size', 'memory', 'size', 'int', 'memory'),
  ],
  GetTensorMutableData: [51, status('address', 'memory')],
  FillStringTensor: [52, status('address', 'texts', 'size')],
  GetStringTensorDataLength: [53, status('address', 'memory')],
  GetStringTensorContent: [54, status('address', 'memory', 'size', 'memory', 'size')],
  CastTypeInfoToTensorInfo: [55, status('address', 'memory')],
  GetTensorElementType: [60, status('address', 'memory')],
  GetDimensionsCount: [61, status('address', 'memory')],
  GetDimensions: [62, status('address', 'memory', 'size')],
  GetSymbolicDimensions: [63, status('address', 'memory', 'size')],
  GetTensorTypeAndShape: [65, status('address', 'memory')],
  CreateMemoryInfo: [68, status('text', 'int', 'int', 'int', 'memory')],
  CreateCpuMemoryInfo: [69, status('int', 'int', 'memory')],
  AllocatorFree: [76, status('address', 'address')],
  GetAllocatorWithDefaultOptions: [78, status('memory')],
  ReleaseEnv: [92, release],
  ReleaseStatus: [93, release],
  ReleaseMemoryInfo: [94, release],
  ReleaseSession: [95, release],
  ReleaseValue: [96, release],
  ReleaseRunOptions: [97, release],
  ReleaseTypeInfo: [98, release],
  ReleaseTensorTypeAndShapeInfo: [99, release],
  ReleaseSessionOptions: [100, release],
  AddSessionConfigEntry: [130, status('address', 'text', 'text')],
  CreateAllocator: [131, status('address', 'address', 'memory')],
  ReleaseAllocator: [132, release],
  RunWithBinding: [133, status('address', 'address', 'address')],
  CreateIoBinding: [134, status('address', 'memory')],
  ReleaseIoBinding: [135, release],
  BindInput: [136, status('address', 'text', 'address')],
  BindOutput: [137, status('address', 'text', 'address')],
  AddRunConfigEntry: [165, status('address', 'text', 'text')],
  SessionOptionsAppendExecutionProvider_TensorRT_V2: [170, status('address', 'address')],
  CreateTensorRTProviderOptions: [171, status('memory')],
  UpdateTensorRTProviderOptions: [172, status('address', 'texts', 'texts', 'size')],
  ReleaseTensorRTProviderOptions: [174, release],
  SessionOptionsAppendExecutionProvider_CUDA_V2: [204, status('address', 'address')],
  CreateCUDAProviderOptions: [205, status('memory')],
  UpdateCUDAProviderOptions: [206, status('address', 'texts', 'texts', 'size')],
  ReleaseCUDAProviderOptions: [208, release],
} as const satisfies Readonly<Record<string, readonly [place: number, signature: Signature]>>

type FunctionName = keyof typeof functions

/** The C API of the library that onnxruntime-node brings, in this thread. */
export class OrtApi {
  readonly #functions: ReadonlyMap<FunctionName, NativeFunction>
  /** `memcpy`, by where our memory is. */
  readonly #copies: Readonly<{ in: NativeFunction; out: NativeFunction }>

  private constructor(
    readonly native: NativeCalls,
    /** Of ONNX Runtime. */
    readonly version: string,
    table: number,
    library: NativeLibrary,
  ) {
    this.#copies = {
      in: library.named('memcpy', { gives: 'address', takes: ['address', 'memory', 'size'] }),
      out: library.named('memcpy', { gives: 'address', takes: ['memory', 'address', 'size'] }),
    }
    const places = native.addressesAt(
      table,
      1 + Math.max(...Object.values(functions).map(([place]) => place)),
    )
    this.#functions = new Map(
      Object.entries(functions).map(([name, [place, signature]]) => [
        name as FunctionName,
        native.functionAt(places[place]!, signature),
      ]),
    )
  }

  /** @param native - undefined: nothing calls C here. @returns why there is none, where there is none. */
  static open(native: NativeCalls | undefined): OrtApi | string {
    if (process.platform !== 'linux') return `it is there on Linux alone, and this is ${process.platform}`
    if (native === undefined) return 'the package koffi is not installed'
    const path = join(onnxRuntimeBinaries() ?? '', 'libonnxruntime.so.1')
    try {
      return OrtApi.#at(native, path)
    } catch (error) {
      return `${path} cannot be called: ${error instanceof Error ? error.message : String(error)}`
    }
  }

  static #at(native: NativeCalls, path: string): OrtApi | string {
    const library = native.load(path)
    const base = Number(library.named('OrtGetApiBase', { gives: 'address', takes: [] })())
    const [getApi = 0, getVersion = 0] = native.addressesAt(base, 2)
    const version = String(native.functionAt(getVersion, { gives: 'text', takes: [] })())
    const table = Number(native.functionAt(getApi, { gives: 'address', takes: ['int'] })(apiVersion))
    if (table === 0) return `ONNX Runtime ${version} has no C API of version ${apiVersion}`
    const api = new OrtApi(native, version, table, library)
    return api.#isSound()
      ? api
      : `the C API of ONNX Runtime ${version} is another one than that of its makers`
  }

  /** Calls a function that gives a status. @throws Error with what it says */
  call(name: FunctionName, ...args: readonly Argument[]): void {
    const failed = Number(this.#raw(name, args))
    if (failed === 0) return
    const message = String(this.#raw('GetErrorMessage', [failed]))
    this.#raw('ReleaseStatus', [failed])
    throw new Error(message)
  }

  /** Calls a function that gives back an address by its last argument. */
  made(name: FunctionName, ...args: readonly Argument[]): number {
    const cell = new BigUint64Array(1)
    this.call(name, ...args, cell)
    return Number(cell[0])
  }

  /** Gives back what {@link made} gave; nothing for 0. */
  release(name: FunctionName & `Release${string}`, address: number): void {
    if (address !== 0) this.#raw(name, [address])
  }

  /** Copies native memory into ours. */
  copyOut(from: number, to: ArrayBufferView): void {
    if (to.byteLength > 0) this.#copies.out(to, from, to.byteLength)
  }

  /** Copies our memory into native one, which has room for it. */
  copyIn(from: ArrayBufferView, to: number): void {
    if (from.byteLength > 0) this.#copies.in(to, from, from.byteLength)
  }

  #raw(name: FunctionName, args: readonly Argument[]): unknown {
    return this.#functions.get(name)!(...args)
  }

  /** Whether the table is the one it is taken for: an error goes in, and comes out as it was. */
  #isSound(): boolean {
    const code = 7
    const text = 'sound'
    const made = Number(this.#raw('CreateStatus', [code, text]))
    const sound = this.#raw('GetErrorCode', [made]) === code && this.#raw('GetErrorMessage', [made]) === text
    this.#raw('ReleaseStatus', [made])
    return sound
  }
}

let opened: OrtApi | string | undefined

/** The C API in this thread, or why there is none. */
export function ortApi(): OrtApi | string {
  opened ??= OrtApi.open(nativeCalls())
  return opened
}
