import { execFile } from 'node:child_process'
import { constants } from 'node:os'

/**
 * Asks the loader of the system for each library, and writes the name of the one that is missing for each that it cannot load. A
 * library is no addon, which Node says of it when it has been loaded.
 */
const look = `
const missing = {}
for (const library of process.argv.slice(1))
  try {
    process.dlopen({ exports: {} }, library, ${constants.dlopen.RTLD_LAZY})
  } catch (error) {
    const absent = /([^\\s:]+): cannot open shared object file/.exec(error.message)
    if (absent !== null) missing[library] = absent[1]
  }
process.stdout.write(JSON.stringify(missing))`

/**
 * Which of `libraries` (names, or paths) a process with this environment cannot load, with the name of the one that is not there: its
 * own, or that of another which it needs. In a process of its own, since they are large and do what they like.
 */
export async function unloadableLibraries(
  libraries: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<ReadonlyMap<string, string>> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['-e', look, ...libraries], { env }, (error, stdout) => {
      // One that ends a process that loads it is as good as absent.
      const missing = error === null ? (JSON.parse(stdout) as Record<string, string>) : selves(libraries)
      resolve(new Map(Object.entries(missing)))
    })
  })
}

function selves(libraries: readonly string[]): Record<string, string> {
  return Object.fromEntries(libraries.map((library) => [library, library]))
}
