import { createRequire } from 'node:module'
import { describe, expect, it } from 'vitest'
import { nativeCalls, NativeCalls } from '../../../../src/backends/onnxruntime/c-api/native-calls.js'
import { OrtApi, ortApi } from '../../../../src/backends/onnxruntime/c-api/ort-api.js'
import { onnxRuntimeVersion } from '../../../../src/backends/onnxruntime/providers.js'

const api = ortApi() as OrtApi

describe('R42: OrtApi', () => {
  it('is that of the library which onnxruntime-node brings', () => {
    expect(api.version).toBe(onnxRuntimeVersion())
  })

  it('says that koffi is missing', () => {
    expect(OrtApi.open(undefined)).toBe('the package koffi is not installed')
  })

  /** koffi, but for what `change` makes of it. */
  function changed(change: (koffi: Record<string, unknown>) => Record<string, unknown>): NativeCalls {
    const koffi = createRequire(import.meta.url)('koffi') as Record<string, unknown>
    return new NativeCalls({ ...koffi, ...change(koffi) } as never)
  }

  it('refuses a library that has no such version, and one whose table is another', () => {
    // The library is asked for a version that no library has.
    const future = new (class extends NativeCalls {
      override functionAt(...[address, signature]: Parameters<NativeCalls['functionAt']>) {
        const call = super.functionAt(address, signature)
        return signature.takes.join() === 'int' && signature.gives === 'address' ? () => call(1_000) : call
      }
    })(createRequire(import.meta.url)('koffi') as never)
    expect(OrtApi.open(future)).toBe(`ONNX Runtime ${onnxRuntimeVersion()} has no C API of version 23`)
    // CreateStatus and GetErrorMessage have changed places with functions that take and give the same.
    const shifted = new (class extends NativeCalls {
      override functionAt(...[address, signature]: Parameters<NativeCalls['functionAt']>) {
        const call = super.functionAt(address, signature)
        return signature.gives === 'text' && signature.takes.length === 1 ? () => 'nothing' : call
      }
    })(createRequire(import.meta.url)('koffi') as never)
    expect(OrtApi.open(shifted)).toContain('is another one than that of its makers')
  })

  it('names the file that is no library', () => {
    const failing = changed(() => ({
      load: () => {
        throw new Error('invalid ELF header')
      },
    }))
    expect(OrtApi.open(failing)).toMatch(/libonnxruntime\.so\.1 cannot be called: invalid ELF header$/)
  })

  it('throws what a status says', () => {
    const options = api.made('CreateSessionOptions')
    const env = api.made('CreateEnv', 3, 'test')
    expect(() => api.made('CreateSession', env, '/nowhere/model.onnx', options)).toThrow(
      /Load model from \/nowhere\/model\.onnx failed/,
    )
    expect(() => api.call('SetSessionGraphOptimizationLevel', options, 7)).toThrow(
      /graph_optimization_level/i,
    )
    api.release('ReleaseSessionOptions', options)
    api.release('ReleaseEnv', env)
    api.release('ReleaseSession', 0)
  })

  it('is asked for options of a provider whose library is not there, and says so', () => {
    const env = api.made('CreateEnv', 3, 'test')
    for (const provider of ['CUDA', 'TensorRT'] as const) {
      const options = api.made(`Create${provider}ProviderOptions`)
      expect(() => api.call(`Update${provider}ProviderOptions`, options, ['device_id'], ['0'], 1)).toThrow(
        /libonnxruntime_providers_|shared library/,
      )
      api.release(`Release${provider}ProviderOptions`, options)
    }
    api.release('ReleaseEnv', env)
  })

  it('reads and copies memory', () => {
    const native = nativeCalls()!
    const options = api.made('CreateRunOptions')
    api.call('AddRunConfigEntry', options, 'key', 'välue')
    api.release('ReleaseRunOptions', options)
    const allocator = api.made('GetAllocatorWithDefaultOptions')
    const value = api.made('CreateTensorAsOrtValue', allocator, BigInt64Array.of(4n), 1, 2)
    const address = api.made('GetTensorMutableData', value)
    api.copyIn(Uint8Array.of(1, 2, 3, 4), address)
    const copy = new Uint8Array(4)
    api.copyOut(address, copy)
    expect([...copy]).toEqual([1, 2, 3, 4])
    expect([...new Uint8Array(native.viewOf(address, 4))]).toEqual([1, 2, 3, 4])
    api.release('ReleaseValue', value)
  })
})
