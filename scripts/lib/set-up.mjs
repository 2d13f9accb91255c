import { BuildFailed, buildServer, buildWeb } from './build.mjs'
import { installPackages } from './npm-packages.mjs'
import { ensureTools, serviceTools } from './system-tools.mjs'

/** Progress of set-up, on stderr: stdout is for data. */
export const say = (line) => process.stderr.write(`[set-up] ${line}\n`)

/** Everything the service needs to run. Ends the process with one line per thing that is missing. */
export function setUp() {
  const problems = ensureTools(serviceTools, say)
  if (problems.length === 0) problems.push(installPackages(say))
  if (problems.some(Boolean)) giveUp(problems.filter(Boolean))
  try {
    buildServer(() => say('building ...'))
    buildWeb(() => say('building the dashboard ...'))
  } catch (error) {
    if (!(error instanceof BuildFailed)) throw error
    giveUp([error.message])
  }
}

function giveUp(lines) {
  for (const line of lines) say(line)
  process.exit(1)
}
