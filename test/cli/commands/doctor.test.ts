import { execFileSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { cudaIsToBeHad, missingProviderReason } from '../../../src/backends/onnxruntime/providers.js'
import { examineFfmpeg, examineHardwareDecoding } from '../../../src/cli/doctor/ffmpeg.js'
import { examineGpus, examineNode } from '../../../src/cli/doctor/machine.js'
import { examineProvider } from '../../../src/cli/doctor/onnx-runtime.js'
import { h100 } from '../../support/fake-nvidia-smi.js'
import { swiftShader, vulkanPresent } from '../../support/vulkan.js'
import { tempDir } from '../../support/temp-dir.js'

/** An ffmpeg that was built for the accelerators and opens the devices. */
function ffmpeg(built: readonly string[], opens: readonly string[], filters: readonly string[] = []) {
  return (_program: string, args: readonly string[]): Promise<string | undefined> => {
    if (args.includes('-filters'))
      return Promise.resolve(filters.map((name) => ` ... ${name} V->V what it does\n`).join(''))
    if (args.includes('-hwaccels'))
      return Promise.resolve(`Hardware acceleration methods:\n${built.join('\n')}\n`)
    const asked = args[args.indexOf('-init_hw_device') + 1] ?? ''
    return Promise.resolve(opens.includes(asked) ? '' : undefined)
  }
}

describe('Node', () => {
  it.each([
    ['20.20.2', 'failed', '20.20.2'],
    ['22.15.0', 'failed', '22.15.0'],
    ['22.16.0', 'ok', '22.16.0 (24 is recommended)'],
    ['23.11.0', 'warning', '23.11.0: a line without long-term support'],
    ['24.0.0', 'ok', '24.0.0'],
    ['26.12.1', 'ok', '26.12.1'],
  ])('%s is %s', (version, state, detail) => {
    expect(examineNode(version)).toMatchObject({ state, detail })
  })
})

describe('the cards', () => {
  const saying = (text: string) => {
    const dir = tempDir()
    writeFileSync(join(dir, 'nvidia-smi'), `#!/bin/sh\ncat <<'END'\n${text}\nEND\n`, { mode: 0o755 })
    return examineGpus({ PATH: `${dir}:${process.env['PATH']}` })
  }

  it('are named with their memory', async () => {
    const second = h100.row.replace('0, GPU-5', '1, GPU-6').replace('1207', '[N/A]')
    const { state, detail } = await saying(`${h100.row}\n${second}`)
    expect(state).toBe('ok')
    expect(detail.split('; ').slice(0, 2)).toEqual([
      'GPU 0: NVIDIA H100 80GB HBM3, 1.2 of 79.6 GiB used',
      'GPU 1: NVIDIA H100 80GB HBM3, 79.6 GiB',
    ])
  })

  it('are none where the program tells of none', async () => {
    expect(await saying('No devices were found')).toMatchObject({
      state: 'ok',
      detail: 'no NVIDIA card: models run on the CPU',
    })
  })
})

describe('hardware decoding', () => {
  it.each([
    ['no accelerator is built in', ['vdpau'], [], 'warning', 'none built into ffmpeg'],
    ['it is built in alone', ['cuda', 'vaapi'], [], 'warning', 'built for cuda, vaapi, but no device opens'],
    ['a device opens', ['vdpau', 'cuda', 'vaapi'], ['vaapi'], 'ok', 'a device opens for vaapi;'],
  ])('says so when %s', async (_, built, opens, state, detail) => {
    const finding = await examineHardwareDecoding(ffmpeg(built, opens))
    expect(finding).toMatchObject({ state, detail: expect.stringContaining(detail) as string })
    expect(finding.fix !== undefined).toBe(state === 'warning')
  })

  it.each([
    [['scale', 'scale_cuda'], 'this ffmpeg has scale_cuda: pictures are scaled on the card'],
    [
      ['scale'],
      'this ffmpeg has no filter scale_cuda: pictures that the card decodes are scaled in software',
    ],
  ])('says where a card has pictures scaled, with the filters %j', async (filters, detail) => {
    const finding = await examineHardwareDecoding(ffmpeg(['cuda'], ['cuda'], filters))
    expect(finding.detail).toBe(`a device opens for cuda; a camera asks for it with hwaccel; ${detail}`)
  })

  it('is a warning on a machine without a device, whatever its ffmpeg was built for', async () => {
    const device = existsSync('/dev/dri') || existsSync('/dev/nvidiactl')
    const { state } = await examineHardwareDecoding()
    expect(device ? ['ok', 'warning'] : ['warning']).toContain(state)
  })
})

describe('WebGPU', () => {
  const environment = (driver: string) => ({
    PATH: process.env['PATH'],
    VK_ICD_FILENAMES: driver,
    XDG_RUNTIME_DIR: tempDir(),
  })

  it('is a warning without a Vulkan driver', async () => {
    expect(await examineProvider('webgpu', 0, environment('/nowhere.json'))).toMatchObject({
      subject: 'provider webgpu',
      state: 'warning',
      fix: expect.stringContaining('libvulkan1') as string,
    })
  })

  it.skipIf(!vulkanPresent)('is there when a driver runs a model', async () => {
    expect(await examineProvider('webgpu', 0, environment(swiftShader))).toMatchObject({ state: 'ok' })
  })
})

it.skipIf(missingProviderReason('tensorrt') === undefined)(
  'a provider that is not installed names the command that brings it',
  async () => {
    const hint = cudaIsToBeHad()
      ? '`gantry gpu install --tensorrt` brings it'
      : 'onnxruntime-node has none for'
    expect(await examineProvider('tensorrt', 0)).toMatchObject({
      state: 'skipped',
      detail: expect.stringContaining(
        `libonnxruntime_providers_tensorrt.so is not installed; ${hint}`,
      ) as string,
    })
  },
)

it('R23: an ffmpeg that may not be executed is not called missing', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'ffmpeg'), '#!/bin/sh\n', { mode: 0o644 })
  vi.stubEnv('PATH', dir)
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(await examineFfmpeg()).toMatchObject([
    { state: 'failed', detail: `cannot be started: this user has no permission for it: ${dir}/ffmpeg` },
  ])
})

it('R47: an ffmpeg whose words of pictures are not understood is told, whatever it was built with', async () => {
  const dir = tempDir()
  const real = execFileSync('sh', ['-c', 'command -v ffmpeg'], { encoding: 'utf8' }).trim()
  const script = `#!/bin/sh\n{ ${real} "$@" 2>&1; } | sed 's/\\[warning\\] \\([0-9.]*\\)$/[warning] t=\\1/'\n`
  writeFileSync(join(dir, 'ffmpeg'), script, { mode: 0o755 })
  vi.stubEnv('PATH', `${dir}:${process.env.PATH}`)
  onTestFinished(() => void vi.unstubAllEnvs())
  const [finding] = await examineFfmpeg()
  expect(finding).toMatchObject({ state: 'failed' })
  expect(finding?.detail).toMatch(/lacks times and sizes of pictures$/)
})
