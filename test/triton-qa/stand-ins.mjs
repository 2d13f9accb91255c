import { copyFileSync, existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Backends that Triton's suites bring as C++ or Python, and the file that does the same here. */
const standIns = {
  identity: 'identity-model.mjs',
  sequence: 'sequence-model.mjs',
  python: 'identity-model.mjs',
}

/** Gives each model of such a backend a stand-in: `backend: "js"`, and its code in every version that is there. */
export function putStandIns(repository) {
  if (!existsSync(repository)) return
  for (const { name } of readdirSync(repository, { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  ))
    putStandIn(join(repository, name))
}

function putStandIn(model) {
  const config = join(model, 'config.pbtxt')
  if (!existsSync(config)) return
  const text = readFileSync(config, 'utf8')
  const backend = /^\s*backend:\s*"(\w+)"/m.exec(text)?.[1]
  const code = standIns[backend] ?? (backend === 'js' ? standIns.identity : undefined)
  if (code === undefined) return
  if (backend !== 'js') {
    const own = text
      .replace(/^(\s*backend:\s*)"\w+"/m, '$1"js"')
      .replace(/^\s*default_model_filename:.*$/m, '')
      .concat(`\nparameters { key: "stands_for" value { string_value: "${backend}" } }\n`)
      .concat(slownessOf(model))
    writeFileSync(config, own)
  }
  const versions = readdirSync(model, { withFileTypes: true }).filter(
    (entry) => entry.isDirectory() && /^\d+$/.test(entry.name),
  )
  for (const { name } of versions) {
    const file = join(model, name, 'model.mjs')
    const of = /key: "stands_for" value \{ string_value: "(\w+)"/.exec(readFileSync(config, 'utf8'))?.[1]
    if (!existsSync(file)) copyFileSync(join(import.meta.dirname, standIns[of] ?? code), file)
  }
}

/** Models in Python that sleep when they are loaded do it here too. */
function slownessOf(model) {
  const [code] = readdirSync(model, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('model.py'),
  )
  const text = code === undefined ? '' : readFileSync(join(model, code), 'utf8')
  const seconds = /def initialize\([^]*?time\.sleep\((\d+)\)/.exec(text)?.[1]
  return seconds === undefined
    ? ''
    : `parameters { key: "creation_delay_sec" value { string_value: "${seconds}" } }\n`
}
