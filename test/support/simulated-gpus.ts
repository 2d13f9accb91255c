import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { onTestFinished, vi } from 'vitest'
import { installationWithBrokenCuda } from './cuda-installation.js'
import { tempDir } from './temp-dir.js'

const provider = fileURLToPath(new URL('./simulated-gpus.mjs', import.meta.url))

/** Workers that have CUDA, in the form of the CPU: see `simulated-gpus.mjs`. */
export const gpuWorkers = {
  detector: fileURLToPath(new URL('./simulated-gpus-detector-worker.mjs', import.meta.url)),
  onnx: fileURLToPath(new URL('./simulated-gpus-onnx-worker.mjs', import.meta.url)),
}

/** What these workers lack. */
export function nothingIsMissing(): undefined {}

/** A run of a session on the provider that charges for a change of shape. */
export type ShapedRun = Readonly<{ session: string; shapes: string; changed: boolean }>

/** Collects the runs of the workers that are started in this test from now on. @returns reads those since the last call. */
export function recordShapes(): () => readonly ShapedRun[] {
  const file = join(tempDir(), 'shapes.jsonl')
  process.env.SHAPES_FILE = file
  onTestFinished(() => void delete process.env.SHAPES_FILE)
  let read = 0
  return () => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    const runs = lines.slice(read).map((line) => JSON.parse(line) as ShapedRun)
    read = lines.length
    return runs
  }
}

/** Has the card of these workers tell its memory, of which sessions and first runs take some: see `simulated-gpus.mjs`. Of one instance. */
export function tellMemory(): void {
  const dir = tempDir()
  const file = join(dir, 'mib')
  writeFileSync(file, '500')
  const row = (mib: string) => `0, GPU-aaaaaaaa-1, 0, 81559, ${mib}, 70.10, 700.00, NVIDIA H100`
  writeFileSync(join(dir, 'nvidia-smi'), `#!/bin/sh\necho "${row(`$(cat ${file})`)}"\n`, { mode: 0o755 })
  vi.stubEnv('PATH', `${dir}:${process.env['PATH']}`)
  vi.stubEnv('CARD_MIB', file)
  vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined)
  onTestFinished(() => void vi.unstubAllEnvs())
}

/** What a provider was told as a session was opened on it. */
export type ToldOptions = Readonly<{ provider: string; options: Readonly<Record<string, string>> }>

/**
 * Collects what the workers that are started in this test from now on tell their provider.
 *
 * @param neededBytes - sessions with a limit below that fail.
 * @returns reads all of it.
 */
export function recordOptions(neededBytes = 0): () => readonly ToldOptions[] {
  const file = join(tempDir(), 'options.jsonl')
  process.env.OPTIONS_FILE = file
  process.env.NEEDED_BYTES = String(neededBytes)
  onTestFinished(() => {
    delete process.env.OPTIONS_FILE
    delete process.env.NEEDED_BYTES
  })
  return () => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
    return lines.map((line) => JSON.parse(line) as ToldOptions)
  }
}

/** How a GPU does: see `simulated-gpus.mjs`. */
export type VirtualGpu = Readonly<{ fault?: 700 | 719 | 999; slowMs?: number }>

/** GPUs that are not there, for workers and for a whole service; gone with the test. */
export class VirtualGpus {
  readonly folder = tempDir()
  /** For processes that are to have them. */
  readonly env: Readonly<Record<string, string>>

  constructor(readonly count: number) {
    for (let gpu = 0; gpu < count; gpu += 1) this.set(gpu, {})
    // As the driver would show so many.
    const visible = Array.from({ length: count }, (_, gpu) => gpu).join(',')
    this.env = { VIRTUAL_GPUS: this.folder, CUDA_VISIBLE_DEVICES: visible }
  }

  set(gpu: number, state: VirtualGpu): void {
    const file = join(this.folder, String(gpu))
    writeFileSync(`${file}.new`, JSON.stringify(state))
    renameSync(`${file}.new`, file)
  }

  /** It falls off the bus. */
  remove(gpu: number): void {
    rmSync(join(this.folder, String(gpu)))
  }

  /** So far. */
  runs(gpu: number): number {
    const file = join(this.folder, `runs-${gpu}`)
    return existsSync(file) ? statSync(file).size : 0
  }
}

/** An installation of Gantry whose CUDA is that of `simulated-gpus.mjs`. It is gone with the test. @returns its command. */
export function installationWithVirtualGpus(): string {
  const main = installationWithBrokenCuda()
  const runtime = join(main, '../../../node_modules/onnxruntime-node')
  const text = readFileSync(join(runtime, 'package.json'), 'utf8')
  const description = JSON.parse(text) as Record<string, unknown>
  writeFileSync(join(runtime, 'package.json'), JSON.stringify({ ...description, main: 'dist/virtual.mjs' }))
  writeFileSync(
    join(runtime, 'dist', 'virtual.mjs'),
    `import ort from './index.js'
     import { addSimulatedGpus } from ${JSON.stringify(pathToFileURL(provider).href)}
     addSimulatedGpus(ort)
     export default ort
    `,
  )
  return main
}
