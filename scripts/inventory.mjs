#!/usr/bin/env node
// What the installed service consists of: `sbom.cdx.json` (CycloneDX, by npm) and `licences.txt`, the licence and its text of each
// package that it needs to run. `node scripts/inventory.mjs [FOLDER [INSTALLED]]`, into dist/ by default; of the packages of this
// repository, or of another folder with package.json and node_modules, which may be for another platform. SOURCE_DATE_EPOCH makes the
// same list of the same packages.
import './lib/right-node.mjs'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { npmOutput } from './lib/npm.mjs'
import { root } from './lib/root.mjs'

const folder = resolve(process.argv[2] ?? join(root, 'dist'))
const installed = resolve(process.argv[3] ?? root)
const { name, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const packages = new Map(
  npmOutput(['ls', '--all', '--parseable', '--omit', 'dev'], installed)
    .split('\n')
    .filter((place) => place.includes('node_modules'))
    .map((place) => {
      const manifest = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'))
      return [`${manifest.name}@${manifest.version}`, place]
    }),
)

// Of all, since npm leaves out too much when it is to leave out what only tests and builds need.
const sbom = JSON.parse(npmOutput(['sbom', '--sbom-format', 'cyclonedx'], installed))
const isNeeded = (component) => packages.has(`${component.name}@${component.version}`)
sbom.components = sbom.components.filter(isNeeded)
const refs = new Set([sbom.metadata.component, ...sbom.components].map((component) => component['bom-ref']))
sbom.dependencies = sbom.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((of) => refs.has(of)) }))
// npm takes the name of the folder.
sbom.metadata.component.name = name
const epoch = process.env.SOURCE_DATE_EPOCH
if (epoch) {
  sbom.metadata.timestamp = new Date(Number(epoch) * 1000).toISOString()
  // It is unique by its form, and may be left out.
  delete sbom.serialNumber
}

const components = sbom.components.map((component) => {
  const id = `${component.name}@${component.version}`
  const licence = (component.licenses ?? [])
    .map(({ license, expression }) => expression ?? license.id ?? license.name)
    .join(' AND ')
  return { id, licence, text: textOf(packages.get(id)) }
})
const without = components.filter(({ licence }) => licence === '').map(({ id }) => id)
if (without.length > 0) {
  console.error(
    `no licence is known of ${without.join(', ')}: see what their authors say, before they are given away`,
  )
  process.exit(1)
}

mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'sbom.cdx.json'), `${JSON.stringify(sbom, undefined, 2)}\n`)
writeFileSync(
  join(folder, 'licences.txt'),
  [
    `What ${name} ${version} needs to run, beside Node.js and ffmpeg.\n`,
    ...components.map(({ id, licence }) => `${id}: ${licence}`),
    ...components.filter(({ text }) => text !== '').map(({ id, text }) => `\n--- ${id}\n\n${text.trim()}`),
    '',
  ].join('\n'),
)
console.log(
  `${join(folder, 'sbom.cdx.json')}, ${join(folder, 'licences.txt')}: ${components.length} packages`,
)

/** Licence and notice of a package as it has them; empty where it has none, or is for another system. */
function textOf(place) {
  if (place === undefined) return ''
  const files = readdirSync(place).filter((file) => /^(licen[cs]e|copying|notice)(\.|-|$)/i.test(file))
  return files.map((file) => readFileSync(join(place, file), 'utf8')).join('\n')
}
