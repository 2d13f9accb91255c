import { readFile, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { ScenarioError } from '../errors.js'
import { loopProblems } from './loop.js'
import { type Scenario, scenarioSchema } from './schema.js'

const folder = fileURLToPath(new URL('../scenarios', import.meta.url))

/** Names of the library, in order. */
export async function scenarioNames(): Promise<string[]> {
  const files = await readdir(folder)
  return files
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => basename(file, '.yaml'))
    .sort()
}

/** @throws ScenarioError `GANTRY_CONFIG` if there is no such scenario or it does not fit the schema. */
export async function loadScenario(name: string): Promise<Scenario> {
  const text = await readFile(join(folder, `${name}.yaml`), 'utf8').catch(() => undefined)
  if (text === undefined)
    throw new ScenarioError(name, [
      `there is none of this name; there are ${(await scenarioNames()).join(', ')}`,
    ])
  return parseScenario(name, text)
}

/** Checks a scenario text; every problem is named with its path. */
export function parseScenario(name: string, yaml: string): Scenario {
  let document: unknown
  try {
    document = parse(yaml)
  } catch (error) {
    throw new ScenarioError(name, [error instanceof Error ? error.message : String(error)])
  }
  const result = scenarioSchema.safeParse(document)
  if (!result.success) {
    throw new ScenarioError(
      name,
      result.error.issues.map(({ path, message }) => `${path.join('.') || '(top)'}: ${message}`),
    )
  }
  if (result.data.name !== name)
    throw new ScenarioError(name, [`name: is "${result.data.name}", must be the file's name`])
  const problems = loopProblems(result.data)
  if (problems.length > 0) throw new ScenarioError(name, problems)
  return result.data
}
