import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import {
  cudaProvider,
  withCudaLibraries,
  withoutCudaLibraries,
} from '../../../src/backends/onnxruntime/cuda-libraries.js'
import { tempDir } from '../../support/temp-dir.js'

/** A store with packages of one CUDA, one of them not complete, and the folder of ONNX Runtime's libraries. */
function store(): { folder: string; binaries: string; ofCuda: string } {
  const [folder, binaries] = [join(tempDir(), '.cuda'), tempDir()]
  const ofCuda = join(folder, '13')
  for (const name of ['nvidia-cublas-13.1.0.3', 'nvidia-cufft-12.0.1.partial', 'onnxruntime-gpu-1.30.0'])
    mkdirSync(join(ofCuda, name), { recursive: true })
  writeFileSync(join(ofCuda, 'onnxruntime-gpu-1.30.0', cudaProvider), '')
  return { folder, binaries, ofCuda }
}

it('shows the loader what was brought for the provider that is linked, before what it knows already', () => {
  const { folder, binaries, ofCuda } = store()
  symlinkSync(join(ofCuda, 'onnxruntime-gpu-1.30.0', cudaProvider), join(binaries, cudaProvider))
  const blas = join(ofCuda, 'nvidia-cublas-13.1.0.3')
  expect(withCudaLibraries({ A: '1' }, folder, binaries)).toEqual({ A: '1', LD_LIBRARY_PATH: blas })
  const shown = withCudaLibraries({ LD_LIBRARY_PATH: '/opt/lib' }, folder, binaries)
  expect(shown).toEqual({ LD_LIBRARY_PATH: `${blas}:/opt/lib` })
  expect(withCudaLibraries(shown, folder, binaries)).toEqual(shown)
  expect(withoutCudaLibraries(shown, folder)).toEqual({ LD_LIBRARY_PATH: '/opt/lib' })
  expect(withoutCudaLibraries({ LD_LIBRARY_PATH: blas }, folder).LD_LIBRARY_PATH).toBeUndefined()
})

it('leaves the environment alone where the provider is not linked, or is none of ours', () => {
  const { folder, binaries } = store()
  const env = { LD_LIBRARY_PATH: '/opt/lib::' }
  expect(withCudaLibraries(env, folder, binaries)).toBe(env)
  writeFileSync(join(binaries, cudaProvider), '')
  expect(withCudaLibraries(env, folder, binaries)).toBe(env)
  expect(withoutCudaLibraries(env, folder)).toBe(env)
})
