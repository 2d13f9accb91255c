// In the place of dist/backends/onnxruntime/c-api/device.js: a device that is the CPU, told of options as CUDA is. What it was told is
// written to the file $OPTIONS_FILE: {"provider", "options"} by line. A session whose `gpu_mem_limit` is below $NEEDED_BYTES fails as there.
import { appendFileSync } from 'node:fs'

export function appendProvider(_api, _sessionOptions, provider, options) {
  if (provider === 'cpu') return
  if (process.env.OPTIONS_FILE)
    appendFileSync(process.env.OPTIONS_FILE, `${JSON.stringify({ provider, options })}\n`)
  const needed = Number(process.env.NEEDED_BYTES ?? 0)
  if (Number(options.gpu_mem_limit ?? Infinity) < needed)
    throw new Error(
      `/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Available memory of ${options.gpu_mem_limit} is smaller than requested bytes of ${needed}\n`,
    )
}

export function deviceMemory(api, provider) {
  if (provider === 'cpu') return undefined
  const memory = { name: 'Cpu', allocator: 1, memory: 0 }
  const signature = { gives: 'address', takes: ['address', 'address', 'size'] }
  const copy = api.native.load('libc.so.6').named('memcpy', signature)
  return { device: memory, host: memory, copy: (to, from, bytes) => void copy(to, from, bytes) }
}
