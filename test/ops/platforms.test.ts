import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { run } from '../../src/cli/program.js'
import { fakeTerminal } from '../support/fake-terminal.js'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const here = (args: readonly string[]) => args.map((arg) => arg.replace('/app/', `${root}/`))

type Runtime = Readonly<{ spec: Readonly<{ containers: readonly [Readonly<{ args: readonly string[] }>] }> }>

/** The platforms themselves are asked by `npm run test:kubernetes`. */
describe('files for KServe, Azure ML and Kubeflow Pipelines', () => {
  it.each([
    [
      'deploy/kserve',
      (parse(read('deploy/kserve/serving-runtime.yaml')) as Runtime).spec.containers[0].args,
      { repository: '/mnt/models', httpPort: 8_080, grpcPort: 9_000 },
    ],
    [
      'deploy/azureml',
      JSON.parse(
        /^CMD (\[.*\])$/m.exec(read('deploy/azureml/environment/Dockerfile'))?.[1] ?? '[]',
      ) as string[],
      { repository: join(root, 'models'), httpPort: 8_000, grpcPort: 8_001 },
    ],
  ])('%s has a command line that the service takes', async (_, args, expected) => {
    const terminal = fakeTerminal()
    expect(await run([...here(args), '--print-config'], terminal), terminal.stderr()).toBe(0)
    const { server, models, engines } = parse(terminal.stdout()) as {
      server: { host: string; httpPort: number; grpcPort: number }
      models: { repository: string }
      engines: number
    }
    const { httpPort, grpcPort, host } = server
    expect([host, engines]).toEqual(['0.0.0.0', 0])
    expect({ repository: models.repository, httpPort, grpcPort }).toEqual(expected)
  })

  it('name the image of this version', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string }
    for (const file of [
      'deploy/kserve/serving-runtime.yaml',
      'deploy/azureml/environment/Dockerfile',
      'deploy/kfp/gantry_components.py',
      'docs/kubernetes.md',
    ]) {
      const tags = [...read(file).matchAll(/gantry(?:-kfp)?:(\d[\w.-]*)/g)].map(([, tag]) => tag)
      expect(new Set(tags), file).toEqual(new Set([version]))
    }
  })

  it('have steps in Python, for the kfp that they are tried with', () => {
    const text = read('deploy/kfp/gantry_components.py')
    const parsed = spawnSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], {
      input: text,
      encoding: 'utf8',
    })
    expect([parsed.status, parsed.stderr]).toEqual([0, ''])
    const tried = /^kfp==(\S+)$/m.exec(read('test/kubernetes/requirements.txt'))?.[1]
    expect(read('deploy/kfp/Dockerfile')).toContain(`kfp==${tried} `)
  })
})
