import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readModel } from '../../src/repository/model-definition.js'
import { rowColumns } from '../../src/tools/batch/outputs/columns.js'

const root = join(import.meta.dirname, '../..')
const etl = join(root, 'examples/etl')

/** The pipelines themselves run in `npm run test:etl`: their packages take a gigabyte. */
describe('examples/etl', () => {
  it.each(['gantry_rows.py', 'beam_pipeline.py', 'spark_pipeline.py'])('%s is Python', (file) => {
    const read = `import ast, sys; ast.parse(open(sys.argv[1]).read())`
    const { status, stderr } = spawnSync('python3', ['-c', read, join(etl, file)], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })

  it('writes the columns of gantry batch', () => {
    const text = readFileSync(join(etl, 'gantry_rows.py'), 'utf8')
    const [, columns = ''] = /COLUMNS = \{(.*?)\}/s.exec(text) ?? []
    expect([...columns.matchAll(/"(\w+)": "/g)].map(([, name]) => name)).toEqual(rowColumns)
  })

  it('pins its packages', () => {
    const lines = readFileSync(join(etl, 'requirements.txt'), 'utf8').trim().split('\n')
    expect(lines.filter((line) => !line.startsWith('#') && !/^[\w[\]-]+==[\w.]+$/.test(line))).toEqual([])
  })

  it('has a model whose steps this repository has', () => {
    const { config } = readModel([join(root, 'models'), join(etl, 'models')], 'ppe_files', 'server')
    expect(config.ensemble_scheduling?.step.map(({ model_name: name }) => name)).toEqual([
      'image_decode',
      'ppe',
    ])
  })
})
