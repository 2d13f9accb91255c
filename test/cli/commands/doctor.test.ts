import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { examineFfmpeg, examineHardwareDecoding } from '../../../src/cli/doctor/ffmpeg.js'
import { examineNode } from '../../../src/cli/doctor/machine.js'
import { examineProvider } from '../../../src/cli/doctor/onnx-runtime.js'
import { swiftShader, vulkanPresent } from '../../support/vulkan.js'
import { tempDir } from '../../support/temp-dir.js'

/** An ffmpeg that was built for the accelerators and opens the devices. */
function ffmpeg(built: readonly string[], opens: readonly string[]) {
  return (_program: string, args: readonly string[]): Promise<string | undefined> => {
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

it('R23: an ffmpeg that may not be executed is not called missing', async () => {
  const dir = tempDir()
  writeFileSync(join(dir, 'ffmpeg'), '#!/bin/sh\n', { mode: 0o644 })
  vi.stubEnv('PATH', dir)
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(await examineFfmpeg()).toMatchObject([
    { state: 'failed', detail: `cannot be started: this user has no permission for it: ${dir}/ffmpeg` },
  ])
})
