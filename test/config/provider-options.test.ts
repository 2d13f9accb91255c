import { describe, expect, it } from 'vitest'
import { inferenceSchema } from '../../src/config/inference.js'
import { optionNames, optionTexts, tunedProviders } from '../../src/config/provider-options.js'

describe('inference.cuda and inference.tensorrt', () => {
  it('take options by their names in ONNX Runtime', () => {
    const { cuda, tensorrt } = inferenceSchema.parse({
      cuda: { gpu_mem_limit: 4_294_967_296, use_tf32: false, arena_extend_strategy: 'kSameAsRequested' },
      tensorrt: { trt_fp16_enable: true, trt_engine_cache_path: '/var/engines' },
    })
    expect(optionTexts(cuda!)).toEqual({
      gpu_mem_limit: '4294967296',
      use_tf32: '0',
      arena_extend_strategy: 'kSameAsRequested',
    })
    expect(optionTexts(tensorrt!)).toEqual({ trt_fp16_enable: '1', trt_engine_cache_path: '/var/engines' })
    expect(inferenceSchema.parse({}).cuda).toBeUndefined()
  })

  it.each([
    [{ cuda: { gpu_mem_limit: 0 } }],
    [{ cuda: { gpu_mem_limit: '4G' } }],
    [{ cuda: { cudnn_conv_algo_search: 'exhaustive' } }],
    [{ cuda: { device_id: 1 } }],
    [{ cuda: { user_compute_stream: 1 } }],
    [{ cuda: { trt_fp16_enable: true } }],
    [{ tensorrt: { trt_extra_plugin_lib_paths: '/tmp/x.so' } }],
    [{ tensorrt: { trt_engine_cache_path: '' } }],
  ])('refuse %j', (inference) => {
    expect(inferenceSchema.safeParse(inference).success).toBe(false)
  })

  it('have names that differ in more than case and underscores, which variables of the environment leave out', () => {
    for (const provider of tunedProviders) {
      const plain = optionNames(provider).map((name) => name.replaceAll('_', '').toLowerCase())
      expect(new Set(plain).size).toBe(plain.length)
    }
  })
})
