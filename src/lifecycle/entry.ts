import { fileURLToPath } from 'node:url'

/**
 * Where the compiled form of a thread's or process's entry file lives.
 *
 * Node runs workers and children from `dist/`; a test that imports `src/` through a transpiler must start the
 * built entry all the same, so a `src/**.ts` caller is mapped to `dist/**.js`.
 *
 * @param callerUrl - `import.meta.url` of the file that starts the entry.
 * @param relative - path of the entry beside the caller, with `.js`.
 */
export function entryPath(callerUrl: string, relative: string): string {
  const path = fileURLToPath(new URL(relative, callerUrl))
  return callerUrl.endsWith('.ts') ? path.replace(/([\\/])src([\\/])(?!.*[\\/]src[\\/])/, '$1dist$2') : path
}
