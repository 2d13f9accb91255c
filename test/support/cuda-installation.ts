import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp-dir.js'

const root = join(import.meta.dirname, '../..')

/** A copy of this installation with an ONNX Runtime of its own. It is gone with the test. */
export type OwnInstallation = Readonly<{
  folder: string
  /** Its command, `dist/cli/main.js`. */
  main: string
  /** Libraries of its ONNX Runtime. */
  binaries: string
  /** Its package onnxruntime-node. */
  runtime: string
}>

export function ownInstallation(): OwnInstallation {
  const dir = tempDir()
  cpSync(join(root, 'dist'), join(dir, 'dist'), { recursive: true })
  for (const name of ['package.json', 'models']) symlinkSync(join(root, name), join(dir, name))
  const modules = join(dir, 'node_modules')
  mkdirSync(modules)
  for (const name of readdirSync(join(root, 'node_modules')))
    if (name !== 'onnxruntime-node') symlinkSync(join(root, 'node_modules', name), join(modules, name))
  const runtime = join(modules, 'onnxruntime-node')
  const original = join(root, 'node_modules', 'onnxruntime-node')
  for (const name of ['package.json', 'dist', 'script'])
    cpSync(join(original, name), join(runtime, name), { recursive: true })
  const inside = join('bin', 'napi-v6', process.platform, process.arch)
  const binaries = join(runtime, inside)
  mkdirSync(binaries, { recursive: true })
  // The binding finds the runtime, and the runtime its providers, beside where they are loaded from.
  for (const name of readdirSync(join(original, inside)))
    if (name.endsWith('.node')) copyFileSync(join(original, inside, name), join(binaries, name))
    else if (!name.includes('_providers_')) symlinkSync(join(original, inside, name), join(binaries, name))
  return { folder: dir, main: join(dir, 'dist', 'cli', 'main.js'), binaries, runtime }
}

/**
 * An installation of Gantry whose ONNX Runtime has a library for CUDA that needs others, which no machine has. It is gone with the test.
 *
 * @param missing - those; `libcublasLt.so.99` by default.
 * @returns its command, `dist/cli/main.js`.
 */
export function installationWithBrokenCuda(...missing: readonly string[]): string {
  return installation(missing.length === 0 ? ['libcublasLt.so.99'] : missing).main
}

/** What a card without room makes ONNX Runtime say, on a machine of that name. */
const noRoom =
  '/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:129 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, int) CUDA failure 2: out of memory ; GPU=0 ; hostname=plant-7-vision ; file=/a.cc ; line=279 ; expr=cudaMalloc(&p, size); '

/**
 * An installation of Gantry with a GPU: it is the CPU, and its memory is full until it is told otherwise. That holds in all processes and
 * threads.
 *
 * @returns its command, and what makes room.
 */
export function installationWithFullCuda(): Readonly<{ main: string; makeRoom: () => void }> {
  const { main, runtime } = installation([])
  const room = join(runtime, 'room')
  appendFileSync(
    join(runtime, 'dist', 'index.js'),
    `
{
  const { existsSync } = require('node:fs')
  const { InferenceSession } = module.exports
  const { create } = InferenceSession
  InferenceSession.create = async (model, options) => {
    const [first] = options.executionProviders
    if ((first.name ?? first) !== 'cuda') return create.call(InferenceSession, model, options)
    if (!existsSync(${JSON.stringify(room)})) throw new Error(${JSON.stringify(noRoom)})
    return create.call(InferenceSession, model, { ...options, executionProviders: ['cpu'] })
  }
}
`,
  )
  return { main, makeRoom: () => writeFileSync(room, '') }
}

/** An installation with a library for CUDA that needs those. */
function installation(needed: readonly string[]): OwnInstallation {
  const own = ownInstallation()
  writeFileSync(join(own.binaries, 'libonnxruntime_providers_shared.so'), sharedLibrary())
  writeFileSync(join(own.binaries, 'libonnxruntime_providers_cuda.so'), sharedLibrary(needed))
  return own
}

/** An ELF library with nothing in it that needs others. @param runpath - where the loader looks for them first. */
export function sharedLibrary(needed: readonly string[] = [], runpath?: string): Buffer {
  const texts = [...needed, ...(runpath === undefined ? [] : [runpath])]
  const strings = Buffer.from(`\0${texts.map((text) => `${text}\0`).join('')}`)
  const placeOf = (text: string) => strings.indexOf(`\0${text}\0`) + 1
  const dynamicAt = 64 + 2 * 56
  const entries = 6 + texts.length
  const symbolsAt = dynamicAt + entries * 16
  const hashAt = symbolsAt + 24
  const stringsAt = hashAt + 16
  const file = Buffer.alloc(stringsAt + strings.length)
  const header = (type: number, flags: number, offset: number, size: number, at: number) => {
    file.writeUInt32LE(type, at)
    file.writeUInt32LE(flags, at + 4)
    for (const [index, value] of [offset, offset, offset, size, size, 4096].entries())
      file.writeBigUInt64LE(BigInt(value), at + 8 + index * 8)
  }
  Buffer.from('7f454c46020101', 'hex').copy(file)
  file.writeUInt16LE(3, 16)
  file.writeUInt16LE(process.arch === 'arm64' ? 183 : 62, 18)
  file.writeUInt32LE(1, 20)
  file.writeBigUInt64LE(64n, 32)
  for (const [at, value] of [
    [52, 64],
    [54, 56],
    [56, 2],
    [58, 64],
  ] as const)
    file.writeUInt16LE(value, at)
  header(1, 6, 0, file.length, 64)
  header(2, 6, dynamicAt, entries * 16, 120)
  const dynamic = [
    ...needed.map((name) => [1, placeOf(name)]),
    ...(runpath === undefined ? [] : [[29, placeOf(runpath)]]),
    ...[
      [4, hashAt],
      [5, stringsAt],
      [6, symbolsAt],
      [10, strings.length],
      [11, 24],
      [0, 0],
    ],
  ]
  for (const [index, [tag = 0, value = 0]] of dynamic.entries()) {
    file.writeBigUInt64LE(BigInt(tag), dynamicAt + index * 16)
    file.writeBigUInt64LE(BigInt(value), dynamicAt + index * 16 + 8)
  }
  file.writeUInt32LE(1, hashAt)
  file.writeUInt32LE(1, hashAt + 4)
  strings.copy(file, stringsAt)
  return file
}
