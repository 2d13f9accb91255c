import { describe, expect, it } from 'vitest'
import { missingLibrariesText, providerReason } from '../../../src/backends/onnxruntime/provider-reason.js'

/** As ONNX Runtime 1.30 writes it on a machine of that name. */
const cudaError = (failure: string, expression: string) =>
  `/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:129 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, SUCCTYPE, const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true; SUCCTYPE = cudaError; std::conditional_t<THRW, void, common::Status> = void] /onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:121 std::conditional_t<THRW, void, onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, const char*, SUCCTYPE, const char*, const char*, int) [with ERRTYPE = cudaError; bool THRW = true; SUCCTYPE = cudaError; std::conditional_t<THRW, void, common::Status> = void] CUDA failure ${failure} ; GPU=0 ; hostname=plant-7-vision ; file=/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_execution_provider.cc ; line=279 ; expr=${expression}; \n\n`

const reason = (text: string, deviceId?: number, gpus?: number) => providerReason(text, { deviceId, gpus })

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
      'the NVIDIA driver is too old for the CUDA that is installed: install a newer one, or the library for an older CUDA',
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
      'GPU 3: an illegal memory access was encountered (CUDA error 700); this process can use the card no more, until it is started again',
    ],
    [
      cudaError('719: unspecified launch failure', 'cudaEventSynchronize(event)'),
      'GPU 3: unspecified launch failure (CUDA error 719); this process can use the card no more, until it is started again',
    ],
    [
      cudaError('801: operation not supported', 'cudaGraphLaunch(graph, stream)'),
      'GPU 3: operation not supported (CUDA error 801)',
    ],
    [
      cudaError('46: CUDA-capable device(s) is/are busy or unavailable', 'cudaSetDevice(info_.device_id)'),
      'GPU 3 is taken by another process alone: `nvidia-smi -c DEFAULT` lets several use it',
    ],
    [
      cudaError('999: unknown error', 'cudaSetDevice(info_.device_id)'),
      'CUDA cannot be used on GPU 3 (CUDA error 999: unknown error): `nvidia-smi` tells whether driver and card work',
    ],
    [
      cudaError(
        '803: system has unsupported display driver / cuda driver combination',
        'cudaGetDeviceCount(&n)',
      ),
      'the NVIDIA driver and its libraries are of versions that do not go together: start the machine again after an update, or install both anew',
    ],
    [
      'NVRM: Xid (PCI:0000:0a:00): 79, GPU has fallen off the bus.',
      'GPU 3 is lost: dmesg has the reason (Xid), a reset of the card or of the machine brings it back',
    ],
    [
      'CUDNN failure 3006: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH ; GPU=0 ; hostname=plant-7-vision',
      'GPU 3 lacks what the model computes with, such as float16: use the float32 model there',
    ],
    [
      'Program Conv2DMatMul requires f16 but the device does not support it.',
      'GPU 3 lacks what the model computes with, such as float16: use the float32 model there',
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
      'libcublasLt.so.13 is missing: install CUDA 13, or name the folder in LD_LIBRARY_PATH',
    ],
    [
      'libcudnn.so.9: cannot open shared object file: No such file or directory',
      'libcudnn.so.9 is missing: install cuDNN 9, or name the folder in LD_LIBRARY_PATH',
    ],
    [
      'libcufft.so.11: cannot open shared object file: No such file or directory',
      'libcufft.so.11 is missing: install CUDA, or name the folder in LD_LIBRARY_PATH',
    ],
    [
      'libcuda.so.1: cannot open shared object file: No such file or directory',
      'libcuda.so.1 is missing: install the NVIDIA driver',
    ],
    [
      'libnvinfer.so.10: cannot open shared object file: No such file or directory',
      'libnvinfer.so.10 is missing: install TensorRT 10, or name the folder in LD_LIBRARY_PATH',
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

  it('tells how full the card is, and how old the driver, where the machine does', () => {
    const place = {
      deviceId: 0,
      gpus: 1,
      memory: () => ({ usedBytes: 14_541 * 1024 ** 2, totalBytes: 15_360 * 1024 ** 2 }),
      driver: () => '470.82.01',
    }
    expect(providerReason(cudaError('2: out of memory', 'cudaMalloc(&p, size)'), place)).toBe(
      'GPU 0 is out of memory: 14.2 of 15 GiB used',
    )
    expect(providerReason('Failed to allocate memory for requested buffer of size 9', place)).toBe(
      'GPU 0 is out of memory: 14.2 of 15 GiB used',
    )
    const old = cudaError(
      '35: CUDA driver version is insufficient for CUDA runtime version',
      'cudaSetDevice(0)',
    )
    expect(providerReason(old, place)).toMatch(/^the NVIDIA driver 470\.82\.01 is too old for the CUDA/)
  })

  it('names no number where the provider has no GPU of a number', () => {
    expect(reason('WebGPU: out of memory')).toBe('the GPU is out of memory')
  })

  it('is short, whatever native code says', () => {
    const unknown = `/onnxruntime_src/onnxruntime/core/providers/cuda/x.cc:12 std::vector<int> onnxruntime::cuda::Planner::Plan(const char*, int) const ${'no plan '.repeat(200)}`
    expect(reason(unknown)).toMatch(/^no plan no plan .{200,}…$/)
    expect(reason(unknown)).toHaveLength(300)
  })
})

describe('R25: missingLibrariesText', () => {
  it('names all libraries and what brings them, each once', () => {
    const cuda = ['libcublasLt.so.13', 'libcublas.so.13', 'libcufft.so.12', 'libcudnn.so.9']
    expect(missingLibrariesText(cuda)).toBe(
      'libcublasLt.so.13, libcublas.so.13, libcufft.so.12 and libcudnn.so.9 are missing: install CUDA 13 and cuDNN 9, or name the folder in LD_LIBRARY_PATH',
    )
    expect(missingLibrariesText(['libcuda.so.1'])).toBe('libcuda.so.1 is missing: install the NVIDIA driver')
    expect(missingLibrariesText(['libother.so.2'])).toBe('libother.so.2 is missing')
  })
})
