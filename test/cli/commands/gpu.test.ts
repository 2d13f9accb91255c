import { execFile, type ChildProcess } from 'node:child_process'
import { existsSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { onPath } from '../../../scripts/lib/system-tools.mjs'
import type { Finding } from '../../../src/cli/findings.js'
import { libraryPackages } from '../../../src/cli/gpu/cuda-packages.js'
import { onnxRuntimeVersion } from '../../../src/backends/onnxruntime/providers.js'
import { ownInstallation, sharedLibrary, type OwnInstallation } from '../../support/cuda-installation.js'
import { freePort } from '../../support/free-port.js'
import { makeWheel, PythonIndex, type WheelSpec } from '../../support/python-index.js'
import { tempDir } from '../../support/temp-dir.js'

const version = onnxRuntimeVersion()
const provider = 'libonnxruntime_providers_cuda.so'

/** A library for CUDA that needs one of CUDA, beside others of the wheel. */
const runtimeWheel: WheelSpec = {
  name: 'onnxruntime-gpu',
  version,
  tags: 'cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64',
  files: {
    'onnxruntime/__init__.py': Buffer.from(''),
    'onnxruntime/capi/onnxruntime_pybind11_state.so': sharedLibrary(),
    'onnxruntime/capi/libonnxruntime_providers_shared.so': sharedLibrary(),
    'onnxruntime/capi/libonnxruntime_providers_tensorrt.so': sharedLibrary(['libnvinfer.so.10']),
    [`onnxruntime/capi/${provider}`]: sharedLibrary(['libcublasLt.so.13']),
  },
}
const cublas: WheelSpec = {
  name: 'nvidia-cublas',
  version: '13.1.0.3',
  files: {
    'nvidia/cu13/include/cublas.h': Buffer.from(''),
    'nvidia/cu13/lib/libcublas.so.13': sharedLibrary(['libcublasLt.so.13']),
    'nvidia/cu13/lib/libcublasLt.so.13': sharedLibrary(),
  },
}
const complete = ['nvidia-cublas-13.1.0.3', `onnxruntime-gpu-${version}`]

/** A machine with a driver, and all libraries of CUDA 13 but cuBLAS. */
function machine(index: string, cuda = '13.0'): NodeJS.ProcessEnv {
  const [programs, libraries] = [tempDir(), tempDir()]
  const shown = `| NVIDIA-SMI 580.159.03   Driver Version: 580.159.03   CUDA Version: ${cuda} |`
  writeFileSync(join(programs, 'nvidia-smi'), `#!/bin/sh\necho '${shown}'\n`, { mode: 0o755 })
  const there = libraryPackages[13].filter(({ name }) => name !== cublas.name)
  for (const library of there.flatMap((one) => one.libraries))
    writeFileSync(join(libraries, library), sharedLibrary())
  return {
    PATH: `${programs}:${process.env.PATH}`,
    HOME: process.env.HOME,
    LD_LIBRARY_PATH: libraries,
    PIP_CONFIG_FILE: '/dev/null',
    PIP_INDEX_URL: index,
    PIP_RETRIES: '0',
  }
}

type Ended = Readonly<{ code: number | null; stdout: string; stderr: string }>

function gantry(
  { main }: OwnInstallation,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  started: (child: ChildProcess) => void = () => undefined,
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, ...args], { env }, (_, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    )
    started(child)
  })
}

const findingsOf = ({ stdout }: Ended) => (JSON.parse(stdout) as { findings: Finding[] }).findings
const finding = (ended: Ended, subject: string) => findingsOf(ended).find((one) => one.subject === subject)
const packagesIn = ({ folder }: OwnInstallation) => readdirSync(join(folder, '.cuda/13')).sort()

/** A machine with a driver tells of it wherever it is asked. */
const driver = existsSync('/proc/driver/nvidia/version') || onPath('nvidia-smi')

describe.skipIf(process.platform !== 'linux' || process.arch !== 'x64')('gantry gpu', () => {
  it(
    'brings the library of the same version and those that the machine lacks, where every process finds them',
    { timeout: 180_000 },
    async () => {
      const [here, index] = [ownInstallation(), await PythonIndex.start()]
      const env = machine(index.url)
      for (const wheel of [runtimeWheel, cublas]) index.add(wheel)
      const plan = await gantry(here, ['gpu', 'install', '--dry-run'], env)
      expect(plan.stdout).toMatch(/^for CUDA 13: onnxruntime-gpu, nvidia-cublas; about \d/)
      expect([plan.code, index.asked]).toEqual([0, []])

      const installed = await gantry(here, ['gpu', 'install', '--json'], env)
      // It is not of ONNX Runtime; that it is loaded shows that what it needs was found.
      const runs = {
        detail: `installed, but runs no model: ${provider} does not fit this version of ONNX Runtime`,
      }
      expect(findingsOf(installed)).toMatchObject([
        { subject: 'driver', state: 'ok', detail: '580.159.03, runs CUDA up to 13.0' },
        { subject: 'onnxruntime', detail: `${version}, with its library for CUDA 13` },
        { subject: 'libraries', detail: 'nvidia-cublas-13.1.0.3' },
        { subject: 'provider cuda', state: 'failed', ...runs },
      ])
      expect(installed.code).toBe(1)
      expect(packagesIn(here)).toEqual(complete)
      expect(readdirSync(join(here.folder, '.cuda'))).toEqual(['13'])
      expect(readdirSync(join(here.folder, '.cuda/13', complete[0]!))).toEqual([
        'libcublas.so.13',
        'libcublasLt.so.13',
      ])
      expect(readlinkSync(join(here.binaries, provider))).toContain(`.cuda/13/onnxruntime-gpu-${version}`)
      expect(existsSync(join(here.binaries, 'libonnxruntime_providers_tensorrt.so'))).toBe(false)

      index.asked.length = 0
      const again = await gantry(here, ['gpu', 'install', '--tensorrt'], env)
      expect([again.stderr, index.asked]).toEqual(['[gpu] everything for CUDA 13 is there\n', []])
      expect(existsSync(join(here.binaries, 'libonnxruntime_providers_tensorrt.so'))).toBe(true)
      const doctor = await gantry(here, ['doctor', '--json'], env)
      expect(finding(doctor, 'provider cuda')).toMatchObject({ state: 'warning', ...runs })

      const removed = await gantry(here, ['gpu', 'remove'], env)
      expect([removed.code, removed.stdout]).toEqual([0, `removed ${here.folder}/.cuda\n`])
      expect(readdirSync(here.binaries).filter((name) => name.includes('providers'))).toEqual([])
    },
  )

  it(
    'R39: goes on where it was broken off, and until it is done nothing counts as installed',
    { timeout: 180_000 },
    async () => {
      const [here, index] = [ownInstallation(), await PythonIndex.start()]
      const env = machine(index.url)
      index.add(runtimeWheel)
      const lacking = await gantry(here, ['gpu', 'install'], env)
      expect(lacking.code).toBe(1)
      expect(lacking.stderr).toContain('the package index of pip has no nvidia-cublas==13.* for Linux on x64')
      expect(existsSync(join(here.binaries, provider))).toBe(false)

      index.add(cublas)
      index.asked.length = 0
      const ended = gantry(here, ['gpu', 'install'], env, (child) => {
        void index.hold(cublas.name).then(() => child.kill('SIGKILL'))
      })
      expect((await ended).code).toBe(null)
      expect(existsSync(join(here.binaries, provider))).toBe(false)

      index.release()
      const done = await gantry(here, ['gpu', 'install', '--json'], env)
      expect(finding(done, 'libraries')?.detail).toBe(complete[0])
      const wheel = 'nvidia_cublas-13.1.0.3-py3-none-manylinux_2_27_x86_64.whl'
      expect(index.asked).toEqual([wheel, wheel])
      expect(packagesIn(here)).toEqual(complete)
    },
  )

  it(
    'R39: keeps nothing that was damaged on its way, and fetches it anew',
    { timeout: 180_000 },
    async () => {
      const [here, index] = [ownInstallation(), await PythonIndex.start()]
      const env = machine(index.url)
      index.add(runtimeWheel, '0'.repeat(64))
      const inIndex = await gantry(here, ['gpu', 'install', '--json'], env)
      expect(JSON.parse(inIndex.stderr)).toMatchObject({
        error: {
          code: 'GANTRY_ENVIRONMENT',
          message: `onnxruntime-gpu==${version} was damaged on its way: it is not what the package index promised`,
        },
      })
      index.add({ ...runtimeWheel, sha256: 'wrong' })
      const inside = await gantry(here, ['gpu', 'install', '--json'], env)
      expect(inside.stderr).toMatch(
        /onnxruntime_gpu-\S+ is damaged: onnxruntime\/capi\/\S+ has another checksum/,
      )
      expect(readdirSync(join(here.folder, '.cuda/13'))).toEqual([])
      expect(existsSync(join(here.folder, '.cuda/downloads/onnxruntime-gpu'))).toBe(false)
    },
  )

  it('says what is missing, and does nothing', { timeout: 60_000 }, async () => {
    const here = ownInstallation()
    const index = `http://127.0.0.1:${await freePort()}/simple`
    const says = async (args: readonly string[], env: NodeJS.ProcessEnv) => {
      const { code, stderr } = await gantry(here, ['gpu', 'install', '--quiet', ...args], env)
      expect(code).toBe(1)
      return stderr
    }
    expect(await says([], { ...machine(index), PIP_RETRIES: '1' })).toContain(
      `onnxruntime-gpu==${version} cannot be downloaded: pip does not reach its package index`,
    )
    const old = 'the NVIDIA driver 580.159.03 runs CUDA up to 12.2'
    expect(await says(['--cuda', '13'], machine(index, '12.2'))).toContain(`${old}, not 13\n`)
    const { PATH = '', ...others } = machine(index)
    expect(await says([], { ...others, PATH: PATH.split(':')[0] })).toContain(
      'there is no pip, which fetches from PyPI',
    )
    const wrong = await gantry(here, ['gpu', 'install', '--cuda', '11'], machine(index))
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('Allowed choices are 12, 13')])
  })

  it(
    'takes the installer of the package for CUDA 12, which writes in one step then',
    { timeout: 60_000 },
    async () => {
      const here = ownInstallation()
      writeFileSync(
        join(here.runtime, 'script/install.js'),
        `require('adm-zip')
       require('global-agent')
       const { join } = require('node:path')
       const { mkdirSync, writeFileSync } = require('node:fs')
       const folder = join(__dirname, '../bin/napi-v6', process.platform, process.arch)
       mkdirSync(folder, { recursive: true })
       for (const name of ['shared', 'cuda', 'tensorrt']) writeFileSync(join(folder, 'libonnxruntime_providers_' + name + '.so'), '')
       if (process.env.FAIL) throw new Error('getaddrinfo ENOTFOUND of.nowhere')`,
      )
      const env = machine('none', '12.2')
      const args = ['gpu', 'install', '--libraries', 'none', '--json']
      const failed = await gantry(here, args, { ...env, FAIL: '1' })
      expect(failed.stderr).toContain(
        'the installer of onnxruntime-node failed: getaddrinfo ENOTFOUND of.nowhere',
      )
      expect(readdirSync(join(here.folder, '.cuda/12'))).toEqual([])
      const installed = await gantry(here, args, env)
      expect(finding(installed, 'onnxruntime')?.detail).toBe(`${version}, with its library for CUDA 12`)
      expect(readlinkSync(join(here.binaries, provider))).toContain(`.cuda/12/onnxruntime-gpu-${version}`)
    },
  )

  it.skipIf(driver)(
    'without a driver tells what the loader of the system lacks; wheels may lie in a folder',
    { timeout: 60_000 },
    async () => {
      const here = ownInstallation()
      const { PATH = '', ...others } = machine('none')
      const folders = [runtimeWheel, cublas].map((spec) => dirname(makeWheel(spec)))
      const env = {
        ...others,
        PATH: PATH.slice(PATH.indexOf(':') + 1),
        PIP_NO_INDEX: '1',
        PIP_FIND_LINKS: folders.join(' '),
      }
      const args = ['gpu', 'install', '--cuda', '13', '--json', '--libraries']
      const alone = await gantry(here, [...args, 'none'], env)
      expect([alone.code, finding(alone, 'provider cuda')]).toEqual([
        0,
        expect.objectContaining({
          state: 'warning',
          detail: 'missing: libcublasLt.so.13, libcublas.so.13',
        }),
      ])
      const whole = await gantry(here, [...args, 'missing'], env)
      expect([whole.code, finding(whole, 'provider cuda')?.detail]).toEqual([
        0,
        'nothing is missing but a driver, so no model was run',
      ])
    },
  )

  it('leaves in place what was put beside ONNX Runtime by hand', { timeout: 60_000 }, async () => {
    const here = ownInstallation()
    writeFileSync(join(here.binaries, provider), sharedLibrary())
    const { stdout } = await gantry(here, ['gpu', 'remove'], machine('none'))
    expect(stdout).toBe(`nothing was brought\nnot brought by this command, so left there: ${provider}\n`)
  })
})
