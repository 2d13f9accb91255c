import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../../../src/cli/program.js'
import { ensembleStep, parametersText, pictureEnsemble, redSteps } from '../../support/ensemble-text.js'
import { fakeTerminal } from '../../support/fake-terminal.js'
import { addModel, constantOnnx, redDetector } from '../../support/onnx-models.js'
import { tempDir } from '../../support/temp-dir.js'

async function gantry(...args: readonly string[]) {
  const terminal = fakeTerminal({})
  const code = await run(args, terminal)
  return { code, stdout: terminal.stdout(), stderr: terminal.stderr() }
}

const picture = { name: 'input.1', type: 'float32', shape: [1, 3, 64, 64] } as const

/** Adds a model of such outputs, under numbers for names. */
function add(repository: string, shapes: readonly (readonly number[])[], settings = {}, name = 'm') {
  const outputs = shapes.map((shape, at) => ({
    name: String(at + 1),
    shape,
    data: new Float32Array(shape.reduce((product, size) => product * size, 1)),
  }))
  addModel(repository, name, { onnx: constantOnnx([picture], outputs), config: parametersText(settings) })
}

const nanodet = (classes: number, bins: number) =>
  [64, 16, 4].flatMap((cells) => [
    [1, cells, classes],
    [1, cells, bins],
  ])

describe('gantry models inspect', () => {
  it.each<[string, readonly (readonly number[])[], Readonly<Record<string, string>>, string]>([
    ['NanoDet that does not tell scores from distances', nanodet(32, 32), {}, 'gantry.head_outputs'],
    ['NanoDet that does not tell its classes', nanodet(32, 44), {}, 'gantry.head_classes'],
    ['a head of two kinds', [[1, 85, 40]], {}, 'gantry.head'],
    ['a head that nobody knows', [[1, 77, 40]], {}, 'gantry.head'],
    ['a classifier that is set to be a detector', [[1, 9]], { 'gantry.head': 'yolov8' }, 'gantry.head'],
    ['grids without anchors', [[1, 7, 8, 8]], { 'gantry.head': 'grid' }, 'gantry.head'],
  ])('R67: ends with 2 and names the setting for %s', async (_, shapes, settings, setting) => {
    const repository = tempDir()
    add(repository, shapes, settings)
    const { code, stdout, stderr } = await gantry('models', 'inspect', 'm', '-r', repository)
    expect(code).toBe(2)
    expect(stdout).toMatch(/cameras: ['"]cannot use it: /)
    expect(stdout).toContain(setting)
    const [error, hint] = stderr.split('\n')
    expect(error).toMatch(/^error GANTRY_/)
    expect(hint).toMatch(/^hint: /)
    expect(stderr).toContain(setting)
  })

  it('R67: tells programs the same in JSON', async () => {
    const repository = tempDir()
    add(repository, nanodet(32, 32))
    const { code, stdout, stderr } = await gantry('models', 'inspect', 'm', '-r', repository, '--json')
    expect(code).toBe(2)
    const { detectorError } = JSON.parse(stdout) as { detectorError: { code: string; hint: string } }
    expect(detectorError).toMatchObject({ code: 'GANTRY_HEAD_UNKNOWN' })
    expect(JSON.parse(stderr)).toMatchObject({ error: detectorError })
  })

  it('R67: ends with 2 for an ensemble of cameras with such a model', async () => {
    const repository = tempDir()
    add(repository, nanodet(32, 32), {}, 'red')
    addModel(repository, 'site', {
      config: pictureEnsemble({
        steps: [
          redSteps.letterbox,
          ensembleStep('red', { 'input.1': 'pixels' }, { '1': 'head' }),
          redSteps.head,
        ],
      }),
    })
    const { code, stderr } = await gantry('models', 'inspect', 'site', '-r', repository)
    expect(code).toBe(2)
    expect(stderr).toMatch(/^error GANTRY_HEAD_UNKNOWN.*\nhint: Set gantry.head_outputs/)
  })

  it('shows a classifier as what it is, without a fault, until a pipeline runs it for cameras', async () => {
    const repository = tempDir()
    add(repository, [[1, 9]])
    const shown = await gantry('models', 'inspect', 'm', '-r', repository)
    expect(shown).toMatchObject({ code: 0, stderr: '' })
    expect(shown.stdout).toMatch(/cameras: ['"]it is for API clients: /)
    const file = join(repository, 'pipeline.yaml')
    const write = (more: string) =>
      writeFileSync(file, `apiVersion: gantry/v1\nensemble: m\nmodels: { repository: . }\n${more}`)
    write('')
    const refused = await gantry('models', 'inspect', 'm', '-c', file)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('no output can be read as detections')
    expect((await gantry('check', '-c', file, '--offline')).code).toBe(2)
    write('engines: 0\n')
    expect((await gantry('models', 'inspect', 'm', '-c', file)).code).toBe(0)
    expect((await gantry('check', '-c', file, '--offline')).code).toBe(0)
  })

  it('is content with a detector', async () => {
    const repository = tempDir()
    addModel(repository, 'red', { onnx: redDetector('uint8-nhwc') })
    expect(await gantry('models', 'inspect', 'red', '-r', repository)).toMatchObject({ code: 0, stderr: '' })
  })
})
