import { describe, expect, it } from 'vitest'
import { hardwareFailure, needsTenBits } from '../../src/sources/hardware-failure.js'

const reasonOf = (...errors: readonly string[]) => hardwareFailure(errors, 'GPU 1')

describe('why hardware is of no use', () => {
  it.each([
    [
      'the NVIDIA driver (libcuda.so.1) is not there',
      [
        '[AVHWDeviceContext @ 0x55b4dc278680] [error] Cannot load libcuda.so.1',
        '[AVHWDeviceContext @ 0x55b4dc278680] [error] Could not dynamically load CUDA',
        '[error] Device creation failed: -1.',
        '[h264 @ 0x55b4dc266340] [error] No device available for decoder: device type cuda needed for codec h264.',
        '[error] Device setup failed for decoder on input stream #0:0 : Operation not permitted',
      ],
    ],
    [
      'GPU 1 does not exist',
      [
        '[AVHWDeviceContext @ 0x1] [error] cu->cuDeviceGet(&hwctx->internal->cuda_device, device_idx) failed -> CUDA_ERROR_INVALID_DEVICE: invalid device ordinal',
        '[error] Device creation failed: -542398533.',
      ],
    ],
    [
      'GPU 1 has no memory left for a decoder',
      [
        '[h264 @ 0x1] [error] decoder->cvdl->cuvidCreateDecoder(&decoder->decoder, params) failed -> CUDA_ERROR_OUT_OF_MEMORY: out of memory',
        '[h264 @ 0x1] [error] Failed setup for format cuda: hwaccel initialisation returned error.',
        "[error] Impossible to convert between the formats supported by the filter 'graph 0 input from stream 0:0' and the filter 'auto_scale_0'",
      ],
    ],
    [
      'GPU 1 does not decode such a stream',
      [
        '[h264 @ 0x1] [error] Failed setup for format cuda: hwaccel initialisation returned error.',
        "[error] Impossible to convert between the formats supported by the filter 'graph 0 input from stream 0:0' and the filter 'auto_scale_0'",
        '[error] Error reinitializing filters!',
      ],
    ],
    [
      'the part of the NVIDIA driver that decodes video (libnvcuvid.so.1) is not there',
      ['[h264 @ 0x1] [error] Cannot load libnvcuvid.so.1', '[h264 @ 0x1] [error] Failed loading nvcuvid.'],
    ],
    [
      'GPU 1 fails',
      ['[h264 @ 0x1] [error] cuvidMapVideoFrame failed -> CUDA_ERROR_ILLEGAL_ADDRESS: an illegal address'],
    ],
    ['no device opens', ['[error] Device setup failed for decoder on input stream #0:0']],
  ])('is that %s', (reason, errors) => {
    expect(reasonOf(...errors)).toEqual({ reason, ofScaling: false })
  })

  it.each([
    '[Parsed_scale_cuda_2 @ 0x56] [error] cu->cuModuleLoadDataEx(...) failed -> CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with an unsupported toolchain.',
    "[AVFilterGraph @ 0x56] [error] No such filter: 'scale_cuda'",
    '[Parsed_scale_cuda_2 @ 0x56] [error] Unsupported input format: yuv422p',
  ])('may be of scaling alone: %s', (line) => {
    expect(reasonOf(line)).toEqual({ reason: 'GPU 1 does not scale the pictures', ofScaling: true })
  })

  it('is not looked for in troubles of the camera', () => {
    for (const line of ['[error] Connection refused', '[error] method DESCRIBE failed: 401 Unauthorized'])
      expect(reasonOf(line)).toBeUndefined()
  })

  it('may be ten bits a sample, which is none', () => {
    const line = '[hwdownload @ 0x1] [error] Invalid output format nv12 for hwframe download.'
    expect([needsTenBits([line]), needsTenBits(['[error] Connection refused'])]).toEqual([true, false])
  })
})
