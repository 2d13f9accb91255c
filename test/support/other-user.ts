import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Its number, and that of its group: one without rights where this is root, which permissions do not bind. */
export const otherUid = process.getuid?.() === 0 ? 64_321 : (process.getuid?.() ?? 0)

/** What starts a command as that user. */
export const asOther: readonly string[] =
  process.getuid?.() === 0
    ? ['setpriv', '--reuid', `${otherUid}`, '--regid', `${otherUid}`, '--clear-groups']
    : []

/** Whether a process of a user without rights can be started here. */
export const otherUserWorks =
  process.platform === 'linux' &&
  spawnSync(asOther[0] ?? 'true', [...asOther.slice(1), process.execPath, '--version']).status === 0

/**
 * What a call of a compiled module throws for a user for whom permissions count; undefined if nothing.
 *
 * @param call - `name(arguments)`, as JavaScript.
 */
export function thrownForOther(
  module: string,
  call: string,
): Readonly<{ code: string; message: string }> | undefined {
  const url = pathToFileURL(resolve('dist', module)).href
  const code = `const module = await import(${JSON.stringify(url)})
    try { await module.${call}; console.log('null') }
    catch ({ code, message }) { console.log(JSON.stringify({ code, message })) }`
  const [command = process.execPath, ...before] = [...asOther, process.execPath]
  const { stdout, stderr } = spawnSync(command, [...before, '--input-type=module', '-e', code], {
    encoding: 'utf8',
  })
  if (stdout === '') throw new Error(stderr)
  return (JSON.parse(stdout) as Readonly<{ code: string; message: string }> | null) ?? undefined
}
