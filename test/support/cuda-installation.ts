import { copyFileSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp-dir.js'

const root = join(import.meta.dirname, '../..')

/**
 * An installation of Gantry whose ONNX Runtime has a library for CUDA that needs another one which no machine has. It is gone with
 * the test.
 *
 * @returns its command, `dist/cli/main.js`.
 */
export function installationWithBrokenCuda(missing = 'libcublasLt.so.99'): string {
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
  const binaries = join('bin', 'napi-v6', process.platform, process.arch)
  mkdirSync(join(runtime, binaries), { recursive: true })
  // The binding finds the runtime, and the runtime its providers, beside where they are loaded from.
  for (const name of readdirSync(join(original, binaries)))
    if (name.endsWith('.node')) copyFileSync(join(original, binaries, name), join(runtime, binaries, name))
    else symlinkSync(join(original, binaries, name), join(runtime, binaries, name))
  writeFileSync(join(runtime, binaries, 'libonnxruntime_providers_shared.so'), sharedLibrary())
  writeFileSync(join(runtime, binaries, 'libonnxruntime_providers_cuda.so'), sharedLibrary(missing))
  return join(dir, 'dist', 'cli', 'main.js')
}

/** An ELF library with nothing in it that needs another one. */
function sharedLibrary(needed?: string): Buffer {
  const strings = Buffer.from(`\0${needed ?? ''}\0`)
  const dynamicAt = 64 + 2 * 56
  const entries = needed === undefined ? 6 : 7
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
    ...(needed === undefined ? [] : [[1, 1]]),
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
