import { describe, expect, it } from 'vitest'
import { providerReason } from '../../../src/backends/onnxruntime/provider-reason.js'

/** As ONNX Runtime 1.30 writes it on a machine of that name. */
const cudaError = (failure: string, expression: string) =>
  `/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:129 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, SUCCTYPE, const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true; SUCCTYPE = cudaError; std::conditional_t<THRW, void, common::Status> = void] /onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:121 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, SUCCTYPE, const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true; SUCCTYPE = cudaError; std::conditional_t<THRW, void, common::Status> = void] CUDA failure ${failure} ; GPU=0 ; hostname=plant-7-vision ; file=/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_execution_provider.cc ; line=279 ; expr=${expression}; \n\n`

const reason = (text: string, deviceId = 0, gpus?: number) => providerReason(text, { deviceId, gpus })

describe('R25: providerReason', () => {
  it.each([
    [1, 1, 'GPU 1 does not exist; this machine has GPU 0'],
    [7, 4, 'GPU 7 does not exist; this machine has GPUs 0 to 3'],
    [0, 0, 'GPU 0 does not exist; this machine has none'],
    [2, undefined, 'GPU 2 does not exist; `nvidia-smi -L` lists those there are'],
  ])('names GPU %i of %s that was asked for, whichever CUDA names', (deviceId, gpus, expected) => {
    const text = cudaError('101: invalid device ordinal', 'cudaSetDevice(info_.device_id)')
    expect(reason(text, deviceId, gpus)).toBe(expected)
  })

  it.each([
    [cudaError('2: out of memory', 'cudaMalloc(&p, size)'), 'GPU 3 is out of memory'],
    [
      cudaError('35: CUDA driver version is insufficient for CUDA runtime version', 'cudaGetDeviceCount(&n)'),
      'the NVIDIA driver is too old for the CUDA that is installed',
    ],
    [
      cudaError('100: no CUDA-capable device is detected', 'cudaSetDevice(info_.device_id)'),
      'this machine has no GPU that CUDA can use',
    ],
    [
      cudaError('209: no kernel image is available for execution on the device', 'cudaGetLastError()'),
      'GPU 3 is of a kind that the installed library was not built for',
    ],
    [
      cudaError('700: an illegal memory access was encountered', 'cudaStreamSynchronize(stream)'),
      'GPU 3: an illegal memory access was encountered (CUDA error 700)',
    ],
    [
      "Non-zero status code returned while running Conv node. Name:'/model.0/conv/Conv' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 207618048",
      'GPU 3 is out of memory',
    ],
    [
      'CUDNN failure 5003: CUDNN_STATUS_EXECUTION_FAILED_CUDART ; GPU=0 ; hostname=plant-7-vision ; file=/a/conv.cc ; line=455 ; expr=cudnnConvolutionForward(',
      'GPU 3: CUDNN_STATUS_EXECUTION_FAILED_CUDART (CUDNN error 5003)',
    ],
    [
      'CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=plant-7-vision',
      'GPU 3 is out of memory',
    ],
    [
      'Failed to load library /app/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared object file: No such file or directory',
      'libcublasLt.so.13 is missing: it is part of CUDA 13',
    ],
    [
      'libcudnn.so.9: cannot open shared object file: No such file or directory',
      'libcudnn.so.9 is missing: it is part of cuDNN 9',
    ],
    [
      'libcufft.so.11: cannot open shared object file: No such file or directory',
      'libcufft.so.11 is missing: it is part of CUDA',
    ],
    [
      'libcuda.so.1: cannot open shared object file: No such file or directory',
      'libcuda.so.1 is missing: it comes with the NVIDIA driver',
    ],
    [
      'libnvinfer.so.10: cannot open shared object file: No such file or directory',
      'libnvinfer.so.10 is missing: it is part of TensorRT 10',
    ],
    [
      '/app/bin/libonnxruntime_providers_shared.so: cannot open shared object file: No such file or directory',
      'libonnxruntime_providers_shared.so is missing',
    ],
    [
      '/onnxruntime_src/onnxruntime/core/providers/webgpu/webgpu_context.cc:98 wgpu::Adapter was false. Failed to get a WebGPU adapter.',
      'Failed to get a WebGPU adapter.',
    ],
    [
      'Got invalid dimensions for input: images ; hostname=plant-7-vision',
      'Got invalid dimensions for input: images',
    ],
  ])('says what is the matter: %#', (text, expected) => {
    const said = reason(text, 3, 4)
    expect(said).toBe(expected)
    expect(said).not.toMatch(/onnxruntime_src|std::|hostname|plant-7/)
  })
})
