import { createHash } from 'node:crypto'
import { createReadStream, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { GpuInstallError } from './gpu-install-error.js'
import { runTool, type ToolOptions } from '../../lifecycle/run-tool.js'

/** `13.1.0.3`, of the name of a wheel. */
export function wheelVersion(wheel: string): string {
  return basename(wheel).split('-')[1] ?? ''
}

/**
 * Unpacks shared libraries of a wheel into an empty folder, each checked against the checksum that the wheel has of it.
 *
 * @param wanted - names of those to take.
 * @throws GpuInstallError if the wheel is damaged, or has none of them
 */
export async function unpackLibraries(
  python: string,
  wheel: string,
  folder: string,
  wanted: RegExp,
  options: Omit<ToolOptions, 'cwd'>,
): Promise<void> {
  const name = basename(wheel)
  const all = join(folder, 'wheel')
  const complaints = await runTool(
    python,
    ['-m', 'zipfile', '-e', wheel, all],
    `${name} cannot be unpacked`,
    { ...options, cwd: folder },
  )
  if (complaints !== undefined) throw damaged(name, complaints.trim().split('\n').at(-1) ?? '')
  const libraries = recordOf(all).filter(({ path }) => wanted.test(basename(path)))
  for (const { path, sha256 } of libraries) {
    if ((await checksum(join(all, path))) !== sha256) throw damaged(name, `${path} has another checksum`)
    renameSync(join(all, path), join(folder, basename(path)))
  }
  if (libraries.length === 0) throw damaged(name, 'there is no library in it')
  rmSync(all, { recursive: true })
}

/** Files of an unpacked wheel with their checksums, as its RECORD has them. */
function recordOf(folder: string): { path: string; sha256: string }[] {
  const info = readdirSync(folder).find((name) => name.endsWith('.dist-info'))
  if (info === undefined) return []
  const lines = readFileSync(join(folder, info, 'RECORD'), 'utf8').split('\n')
  return lines.flatMap((line) => {
    const [, path = '', sha256 = ''] = /^([^,"]+),sha256=([\w-]+),/.exec(line) ?? []
    return path === '' ? [] : [{ path, sha256 }]
  })
}

async function checksum(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest('base64url')
}

function damaged(name: string, reason: string): GpuInstallError {
  return new GpuInstallError(
    `${name} is damaged: ${reason}`,
    'Run the same command again: it is fetched anew.',
  )
}
