import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../support/temp-dir.js'

const root = join(import.meta.dirname, '../..')

type Sbom = Readonly<{
  bomFormat: string
  metadata: Readonly<{ component: Readonly<{ name: string }> }>
  components: readonly Readonly<{ name: string; version: string; purl: string }>[]
}>

it('tells what the service consists of, and by which licences', () => {
  const dir = tempDir()
  execFileSync(process.execPath, [join(root, 'scripts/inventory.mjs'), dir], { encoding: 'utf8' })
  const sbom = JSON.parse(readFileSync(join(dir, 'sbom.cdx.json'), 'utf8')) as Sbom
  expect(sbom).toMatchObject({ bomFormat: 'CycloneDX', metadata: { component: { name: 'gantry' } } })
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const names = new Set(sbom.components.map(({ name }) => name))
  expect(Object.keys(dependencies).filter((name) => !names.has(name))).toEqual([])
  expect(['vitest', 'vite', 'typescript', 'eslint'].filter((name) => names.has(name))).toEqual([])
  // What comes with sharp as a binary is under another licence than sharp.
  expect([...names].filter((name) => name.startsWith('@img/sharp-libvips'))).not.toEqual([])

  const licences = readFileSync(join(dir, 'licences.txt'), 'utf8')
  for (const { name, version } of sbom.components)
    expect(licences).toMatch(new RegExp(`^${name}@${version.replace('+', '\\+')}: \\S+`, 'm'))
  expect(licences).toMatch(/--- ws@[\d.]+\n\nCopyright \(c\) 2011 Einar Otto Stangvik/)
}, 60_000)
