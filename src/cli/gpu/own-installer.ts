import { cpSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { GpuInstallError } from './gpu-install-error.js'
import { runTool, type ToolOptions } from '../../lifecycle/run-tool.js'

/**
 * Fills a folder with ONNX Runtime's libraries for CUDA 12 by the installer of its package, which fetches them from NuGet. It writes
 * beside itself, and not in one step: so it runs as a copy.
 *
 * @param runtime - folder of the package.
 * @param folder - empty, and inside of the installation, where the copy finds what it imports.
 * @throws GpuInstallError if it fails
 */
export async function runOwnInstaller(
  runtime: string,
  folder: string,
  options: Omit<ToolOptions, 'cwd'>,
): Promise<void> {
  const copy = join(folder, 'copy')
  for (const name of ['package.json', 'script'])
    cpSync(join(runtime, name), join(copy, name), { recursive: true })
  const complaints = await runTool(
    process.execPath,
    [join(copy, 'script', 'install.js')],
    'the library for CUDA 12 cannot be installed',
    { ...options, cwd: folder, env: { ...proxyOf(options.env), ONNXRUNTIME_NODE_INSTALL: 'cuda12' } },
  )
  if (complaints !== undefined)
    throw new GpuInstallError(
      `the installer of onnxruntime-node failed: ${reasonIn(complaints)}`,
      'It fetches from NuGet: look at the network and HTTPS_PROXY. With driver 580 or newer take --cuda 13, which fetches from PyPI.',
    )
  const binaries = join(copy, 'bin', 'napi-v6', process.platform, process.arch)
  for (const name of readdirSync(binaries)) renameSync(join(binaries, name), join(folder, name))
  rmSync(copy, { recursive: true })
}

/** It knows a proxy by a name of its own alone. */
function proxyOf(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const proxy = env['HTTPS_PROXY'] ?? env['https_proxy']
  return proxy === undefined ? env : { GLOBAL_AGENT_HTTPS_PROXY: proxy, ...env }
}

/** The first line with an error that says something. */
function reasonIn(complaints: string): string {
  const error = /^ *(?:\[cause\]: )?\w*Error(?: \[\w+\])?: (\S.*)$/m.exec(complaints)
  return error?.[1] ?? complaints.trim().split('\n').at(-1) ?? ''
}
