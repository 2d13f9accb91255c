import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { go, goModule, testCache } from './go-programs.mjs'

const version = '1.36.3'
const programs = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl']

/**
 * Builds the programs of a Kubernetes control plane from the module `k8s.io/kubernetes`, once: 5 minutes on two cores.
 *
 * @returns the folder that they are in
 * @throws Error where Go is missing or cannot build them
 */
export function controlPlanePrograms(say) {
  const folder = join(testCache, `kubernetes-${version}`)
  if (existsSync(folder)) return folder
  const building = `${folder}.building-${process.pid}`
  say(`building Kubernetes ${version} (go build), which takes some ten minutes ...`)
  try {
    mkdirSync(join(building, 'bin'), { recursive: true })
    writeModule(building)
    go(['mod', 'tidy'], { cwd: building })
    const flags = ['-trimpath', '-ldflags', `-s -w -X k8s.io/component-base/version.gitVersion=v${version}`]
    for (const program of programs) {
      say(`building ${program} ...`)
      go(['build', ...flags, '-o', 'bin/', `k8s.io/kubernetes/cmd/${program}`], { cwd: building })
    }
    renameSync(join(building, 'bin'), folder)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return folder
}

/** `k8s.io/kubernetes` reads its parts from folders beside it; published, they are modules of the same version. */
function writeModule(folder) {
  const text = readFileSync(join(goModule(`k8s.io/kubernetes@v${version}`), 'go.mod'), 'utf8')
  const parts = [
    ...new Set([...text.matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging\//gm)].map(([, part]) => part)),
  ]
  const replaced = parts.map((part) => `replace ${part} => ${part} v${version.replace(/^1/, '0')}`)
  const [, goVersion] = /^go (\S+)$/m.exec(text)
  const lines = ['module gantry.test/kubernetes', `go ${goVersion}`, `require k8s.io/kubernetes v${version}`]
  writeFileSync(join(folder, 'go.mod'), `${[...lines, ...replaced].join('\n')}\n`)
  const imports = programs.map((program) => `import _ "k8s.io/kubernetes/cmd/${program}"`)
  writeFileSync(join(folder, 'tools.go'), `//go:build tools\n\npackage tools\n\n${imports.join('\n')}\n`)
}
