import { describe, expect, it } from 'vitest'
import { runFailure } from '../../../src/backends/onnxruntime/ort-session.js'
import { isStickyFailure } from '../../../src/backends/onnxruntime/sticky-failure.js'
import { DeviceFailedError } from '../../../src/runtime/errors.js'

const cuda = (code: number, text: string) =>
  `/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:129 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(...) CUDA failure ${code}: ${text} ; GPU=0 ; hostname=box ; file=/onnxruntime_src/x.cc ; line=84 ; expr=cudaStreamSynchronize(stream);`

describe('what a run on a GPU throws', () => {
  it.each([
    [700, 'an illegal memory access was encountered'],
    [702, 'the launch timed out and was terminated'],
    [710, 'device-side assert triggered'],
    [714, 'hardware stack error'],
    [716, 'misaligned address'],
    [719, 'unspecified launch failure'],
    [214, 'uncorrectable ECC error encountered'],
    [999, 'unknown error'],
    [46, 'all CUDA-capable devices are busy or unavailable'],
  ])('sticks: CUDA error %i', (code, text) => {
    expect(isStickyFailure(cuda(code, text))).toBe(true)
  })

  it.each([
    'CUDNN failure 5000: CUDNN_STATUS_EXECUTION_FAILED ; GPU=0 ; hostname=box ; expr=cudnnConvolutionForward(...)',
    'CUBLAS failure 13: CUBLAS_STATUS_EXECUTION_FAILED ; GPU=0 ; expr=cublasGemmHelper(...)',
    'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.',
  ])('sticks: %s', (text) => {
    expect(isStickyFailure(text)).toBe(true)
  })

  it.each([
    cuda(2, 'out of memory'),
    cuda(1, 'invalid argument'),
    'CUBLAS failure 3: the resource allocation failed ; CUBLAS_STATUS_ALLOC_FAILED',
    'CUDNN failure 9: CUDNN_STATUS_NOT_SUPPORTED ; GPU=0',
    'Non-zero status code returned while running Reshape node. The input tensor cannot be reshaped to the requested shape {700}',
    'Got invalid dimensions for input: images for the following indices index: 2 Got: 719 Expected: 64',
    '',
  ])('passes: %s', (text) => {
    expect(isStickyFailure(text)).toBe(false)
  })

  it('is an error of its own where it sticks, without C++ and the name of the host', () => {
    const failure = runFailure(new Error(cuda(700, 'an illegal memory access was encountered')), 'cuda', {
      deviceId: 1,
    })
    expect(failure).toBeInstanceOf(DeviceFailedError)
    expect((failure as Error).message).toMatch(/^GPU 1: an illegal memory access was encountered/)
    expect((failure as Error).message).not.toMatch(/hostname|box|onnxruntime/)
    expect(runFailure(new Error(cuda(2, 'out of memory')), 'cuda', { deviceId: 1 })).not.toBeInstanceOf(
      DeviceFailedError,
    )
    expect(runFailure(new Error(cuda(700, 'x')), 'cpu', { deviceId: 0 })).not.toBeInstanceOf(
      DeviceFailedError,
    )
  })
})
