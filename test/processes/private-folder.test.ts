import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPrivateFolder } from '../../src/processes/private-folder.js'
import { tempDir } from '../support/temp-dir.js'

it('removes folders whose process is gone, and none that may be in use', () => {
  const base = tempDir()
  const mine = createPrivateFolder(base)
  const owner = readFileSync(join(mine, 'owner'), 'utf8')
  const [, namespace] = owner.split(' ')
  const dead = String(spawnSync(process.execPath, ['-e', '']).pid)
  const left = (name: string, text?: string) => {
    const dir = join(base, name)
    mkdirSync(join(dir, 'models'), { recursive: true })
    if (text !== undefined) writeFileSync(join(dir, 'owner'), text)
    return dir
  }
  const abandoned = left('gantry-run-abandoned', `${dead} ${namespace}`)
  const kept = [
    mine,
    left('gantry-run-elsewhere', `${dead} pid:[1]`),
    left('gantry-run-starting'),
    left('other', `${dead} ${namespace}`),
  ]
  const next = createPrivateFolder(base)
  expect(existsSync(abandoned)).toBe(false)
  expect(kept.filter((dir) => !existsSync(dir))).toEqual([])
  expect(next).not.toBe(mine)
  expect(statSync(next).mode & 0o777).toBe(0o700)
})
