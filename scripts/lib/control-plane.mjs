import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { go, goModule, testCache } from './go-programs.mjs'

const version = '1.36.3'
const etcdVersion = '3.6.16'
const kubernetes = {
  module: `k8s.io/kubernetes@v${version}`,
  packages: ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'].map(
    (name) => `k8s.io/kubernetes/cmd/${name}`,
  ),
  linked: ` -X k8s.io/component-base/version.gitVersion=v${version}`,
}
// Debian's is 3.4, with which watches of Kubernetes 1.36 end as soon as they begin.
const etcd = { module: `go.etcd.io/etcd/server/v3@v${etcdVersion}`, packages: ['go.etcd.io/etcd/server/v3'] }

/**
 * Builds the programs of a Kubernetes control plane from their Go modules, once: 9 minutes on two busy cores.
 *
 * @returns the folder that they are in; etcd is `etcd`
 * @throws Error where Go is missing or cannot build them
 */
export function controlPlanePrograms(say) {
  const folder = join(testCache, `kubernetes-${version}-etcd-${etcdVersion}`)
  if (existsSync(folder)) return folder
  const building = `${folder}.building-${process.pid}`
  say(`building Kubernetes ${version} and etcd ${etcdVersion} (go build), which takes some ten minutes ...`)
  try {
    mkdirSync(join(building, 'bin'), { recursive: true })
    for (const programs of [etcd, kubernetes]) build(building, programs, say)
    renameSync(join(building, 'bin/server'), join(building, 'bin/etcd'))
    renameSync(join(building, 'bin'), folder)
  } finally {
    rmSync(building, { recursive: true, force: true })
  }
  return folder
}

/** `go install` refuses modules that read others from folders beside them; these are replaced by what was published. */
function build(folder, { module, packages, linked = '' }, say) {
  const work = join(folder, 'module')
  mkdirSync(work)
  writeModule(work, module, packages)
  go(['mod', 'tidy'], { cwd: work })
  for (const name of packages) {
    say(`building ${name} ...`)
    go(['build', '-trimpath', '-ldflags', `-s -w${linked}`, '-o', '../bin/', name], { cwd: work })
  }
  rmSync(work, { recursive: true })
}

function writeModule(folder, module, packages) {
  const text = readFileSync(join(goModule(module), 'go.mod'), 'utf8')
  const parts = [...text.matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging\//gm)].map(([, part]) => part)
  const replaced = [...new Set(parts)].map(
    (part) => `replace ${part} => ${part} v${version.replace(/^1/, '0')}`,
  )
  const [, goVersion] = /^go (\S+)$/m.exec(text)
  const lines = ['module gantry.test/programs', `go ${goVersion}`, `require ${module.replace('@', ' ')}`]
  writeFileSync(join(folder, 'go.mod'), `${[...lines, ...replaced].join('\n')}\n`)
  const imports = packages.map((name) => `import _ "${name}"`)
  writeFileSync(join(folder, 'tools.go'), `//go:build tools\n\npackage tools\n\n${imports.join('\n')}\n`)
}
