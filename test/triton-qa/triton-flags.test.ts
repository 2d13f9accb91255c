import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { loadPipeline } from '../../src/config/load.js'
import { tempDir } from '../support/temp-dir.js'
import { putStandIns } from './stand-ins.mjs'
import { pipelineOf } from './triton-flags.mjs'

describe('flags of tritonserver', () => {
  it('become a pipeline file that Gantry reads, written in both ways', () => {
    const dir = tempDir()
    const flags = [
      `--model-repository=${dir}`,
      '--http-port',
      '9000',
      '--model-control-mode=explicit',
      '--load-model',
      '*',
    ]
    const { pipeline, unknown } = pipelineOf(flags)
    expect(unknown).toEqual([])
    const file = join(dir, 'pipeline.json')
    writeFileSync(file, JSON.stringify(pipeline))
    const { server, models } = loadPipeline(file).config
    expect(server.httpPort).toBe(9000)
    expect(models).toMatchObject({ repository: [dir], control: 'explicit', load: ['*'] })
  })

  it('poll where they ask for a time between two looks, and take several repositories', () => {
    const { pipeline } = pipelineOf(['--model-store=/a', '--model-repository=/b', '--repository-poll-secs=1'])
    expect(pipeline.models).toMatchObject({ repository: ['/b', '/a'], control: 'poll', pollSeconds: 1 })
  })

  it('name configurations and how many models load side by side', () => {
    const { pipeline, unknown } = pipelineOf([
      '--model-repository=/a',
      '--model-config-name=custom',
      '--model-load-thread-count=32',
    ])
    expect(unknown).toEqual([])
    expect(pipeline.models).toMatchObject({ configName: 'custom', loadsAtATime: 32 })
  })

  it('have the defaults of Triton where those differ', () => {
    const { models, modelServer } = pipelineOf(['--model-repository=/a']).pipeline
    expect(models).toMatchObject({ control: 'none', exitOnError: true, strictReadiness: true })
    expect(modelServer).toMatchObject({ serverName: 'triton', sharedMemory: false })
    const told = [
      '--exit-on-error=false',
      '--strict-readiness',
      'false',
      '--allow-client-shm=true',
      '--id',
      'x',
    ]
    const { pipeline } = pipelineOf(['--model-repository=/a', ...told])
    expect(pipeline.models).toMatchObject({ exitOnError: false, strictReadiness: false })
    expect(pipeline.modelServer).toMatchObject({ serverName: 'x', sharedMemory: true })
  })

  it('are named where Gantry has no counterpart', () => {
    expect(pipelineOf(['--model-repository=/a', '--trace-config=rate=1']).unknown).toEqual(['--trace-config'])
  })
})

describe('stand-ins', () => {
  it('take the place of backends of Triton, in every version, and of no other', () => {
    const dir = tempDir()
    const models = { mine: 'onnxruntime', theirs: 'identity' }
    for (const [name, backend] of Object.entries(models)) {
      mkdirSync(join(dir, name, '1'), { recursive: true })
      mkdirSync(join(dir, name, '2'))
      writeFileSync(join(dir, name, 'config.pbtxt'), `backend: "${backend}"\nmax_batch_size: 1\n`)
    }
    putStandIns(dir)
    putStandIns(dir)
    expect(readFileSync(join(dir, 'theirs/config.pbtxt'), 'utf8')).toMatch(
      /^backend: "js"\nmax_batch_size: 1\n/,
    )
    expect(readFileSync(join(dir, 'theirs/2/model.mjs'), 'utf8')).toContain('identity')
    expect(readFileSync(join(dir, 'mine/config.pbtxt'), 'utf8')).toBe(
      'backend: "onnxruntime"\nmax_batch_size: 1\n',
    )
  })
})
