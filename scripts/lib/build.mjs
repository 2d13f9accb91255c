import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './root.mjs'
import { whenChanged } from './stamp.mjs'

/** A step of the build that failed; what it had to say is already on the terminal. */
export class BuildFailed extends Error {}

function node(script, args, what) {
  const { status } = spawnSync(process.execPath, [join(root, script), ...args], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    // A build that a test run starts is the one that is served later: never with development code in it.
    env: { ...process.env, NODE_ENV: 'production' },
  })
  if (status !== 0) throw new BuildFailed(`${what} failed: the lines above say why`)
}

const toolchain = ['package-lock.json', 'tsconfig.json']

/** Compiles `src/` to `dist/` when it has changed since the last time. */
export function buildServer(beforehand = () => {}) {
  return whenChanged(
    'dist/.stamp-server',
    ['src', 'tsconfig.build.json', 'tsconfig.types.json', ...toolchain],
    () => {
      beforehand()
      node('node_modules/typescript/bin/tsc', ['-p', 'tsconfig.build.json'], 'compiling src/')
      node(
        'node_modules/typescript/bin/tsc',
        ['-p', 'tsconfig.types.json'],
        'writing the types of gantry/backend',
      )
    },
  )
}

/** Bundles the dashboard to `dist/web` when it has changed since the last time. */
export function buildWeb(beforehand = () => {}) {
  if (!existsSync(join(root, 'web'))) return false
  return whenChanged(
    'dist/.stamp-web',
    ['web', 'clients/typescript/src', 'src/config', 'src/messages', 'src/vision', ...toolchain],
    () => {
      beforehand()
      node('node_modules/vite/bin/vite.js', ['build', 'web', '--logLevel', 'warn'], 'bundling the dashboard')
    },
  )
}
