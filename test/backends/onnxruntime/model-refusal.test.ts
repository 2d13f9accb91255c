import { describe, expect, it } from 'vitest'
import { modelRefusal } from '../../../src/backends/onnxruntime/model-refusal.js'

const sound = () => Promise.resolve()
const broken = () =>
  Promise.reject(new Error('This is an invalid model. Error in Node:a : No Op registered for NoSuchOp'))

describe('a model that GPUs refuse', () => {
  it('is at fault where the CPU does not read it either', async () => {
    expect(
      await modelRefusal([new Error('Load model from m.onnx failed: no such op')], broken),
    ).toMatchObject({
      reason: 'This is an invalid model. Error in Node:a : No Op registered for NoSuchOp',
    })
  })

  it.each([
    'CUDA failure 2: out of memory ; GPU=0 ; hostname=h ; expr=cudaMalloc(&p, size);',
    'CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=0',
    'CUDNN failure 1001: CUDNN_STATUS_NOT_INITIALIZED ; GPU=0',
    'CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED',
    'Failed to load shared library',
    'libcudnn.so.9: cannot open shared object file',
    'std::bad_alloc',
  ])('is not looked at where the card is the cause: %s', async (text) => {
    let looks = 0
    const look = () => {
      looks += 1
      return broken()
    }
    expect(await modelRefusal([new Error(text)], look)).toBeUndefined()
    expect(looks).toBe(0)
  })

  it('is sound where the CPU opens it, has no kernel for it, or lacks memory', async () => {
    const failed = [new Error('some fault of a provider')]
    for (const look of [
      sound,
      () => Promise.reject(new Error('NOT_IMPLEMENTED : Could not find an implementation for Conv(11)')),
      () => Promise.reject(new Error('std::bad_alloc')),
    ])
      expect(await modelRefusal(failed, look)).toBeUndefined()
    expect(await modelRefusal([], broken)).toBeUndefined()
  })
})
