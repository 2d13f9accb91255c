/**
 * `npm run test:etl`: the pipelines of examples/etl on their local runners (DirectRunner, local[2]) against a real server. Both must write
 * the rows that `gantry batch` writes. Installs Apache Beam and PySpark on first use; needs Java 17.
 */
import { execFile } from 'node:child_process'
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { keptPython } from '../../scripts/lib/kept-python.mjs'
import { dockClip } from '../support/demo-cameras.js'
import { GantryProcess, mainScript } from '../support/gantry-process.js'
import { until } from '../support/until.js'
import { ffmpegRun } from '../support/video-clips.js'

const root = join(import.meta.dirname, '../..')
const etl = join(root, 'examples/etl')
const labels = join(root, 'models/ppe_detect_video/labels.txt')
const say = (text: string) => process.stderr.write(`${text}\n`)

type Row = Readonly<Record<string, unknown>>

/** Rows of all Parquet files of a folder, or of one file, in an order of their own. */
async function rowsIn(paths: readonly string[]): Promise<string[]> {
  const rows: Row[] = []
  for (const path of paths)
    rows.push(...((await parquetReadObjects({ file: await asyncBufferFromFile(path) })) as Row[]))
  return rows.map((row) => JSON.stringify(row)).sort()
}

function filesIn(folder: string, start: string, end: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(start) && name.endsWith(end))
    .map((name) => join(folder, name))
}

async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
  const began = performance.now()
  await promisify(execFile)(command, args, {
    cwd: etl,
    env: { ...process.env, ...env },
    maxBuffer: 64 * 1024 ** 2,
  })
  say(
    `${args.find((arg) => /batch|pipeline/.test(arg)) ?? command}: ${((performance.now() - began) / 1e3).toFixed(1)} s`,
  )
}

const python =
  process.env.GANTRY_ETL_PYTHON ??
  keptPython('etl', join(etl, 'requirements.txt'), 'Apache Beam and PySpark', say)
const dir = mkdtempSync(join(tmpdir(), 'gantry-etl-'))
const pictures = join(dir, 'pictures')
mkdirSync(pictures)
await ffmpegRun('-i', dockClip, '-vf', 'fps=2', '-frames:v', '40', '-q:v', '3', join(pictures, '%02d.jpg'))
writeFileSync(join(pictures, 'torn.jpg'), 'no picture')
writeFileSync(
  join(dir, 'etl.yaml'),
  JSON.stringify({
    apiVersion: 'gantry/v1',
    models: {
      repository: [join(root, 'models'), join(etl, 'models')],
      control: 'explicit',
      load: ['ppe_files'],
    },
    modelServer: { enabled: true },
    engines: 0,
    log: { level: 'warn' },
  }),
)
const ports = ['--http-port', '0', '--metrics-port', '0', '--set', 'server.grpcPort=0']
const server = new GantryProcess([
  'serve',
  '-c',
  join(dir, 'etl.yaml'),
  ...ports,
  '--set',
  `store.path=${dir}/store`,
  '--json',
])
try {
  const url = await server.httpUrl()
  await until('the model', async () => (await fetch(`${url}/v2/models/ppe_files/ready`)).ok, 120_000)
  const host = new URL(url).host
  const out = join(dir, 'batch.parquet')
  await run(process.execPath, [
    mainScript,
    'batch',
    pictures,
    '--url',
    url,
    '-m',
    'ppe_files',
    '--labels',
    labels,
    '-o',
    out,
  ])
  const expected = await rowsIn([out])
  assert.ok(expected.length > 40, `only ${expected.length} rows`)
  const torn = (text: string) => assert.match(text, /torn\.jpg/)
  torn(readFileSync(`${out}.errors.jsonl`, 'utf8'))

  const common = ['--server', host, '--labels', labels]
  const beam = join(dir, 'beam')
  await run(python, [
    ...['beam_pipeline.py', '--runner', 'DirectRunner', '--input', `${pictures}/*`],
    ...['--output', join(beam, 'rows'), '--errors', join(beam, 'errors'), ...common],
  ])
  assert.deepEqual(await rowsIn(filesIn(beam, 'rows', '.parquet')), expected)
  torn(
    filesIn(beam, 'errors', '.jsonl')
      .map((file) => readFileSync(file, 'utf8'))
      .join(''),
  )

  const spark = join(dir, 'spark')
  await run(
    python,
    [
      ...['spark_pipeline.py', '--input', pictures, '--output', join(spark, 'rows')],
      ...['--errors', join(spark, 'errors'), '--partitions', '4', ...common],
    ],
    {
      PYSPARK_SUBMIT_ARGS: '--master local[2] pyspark-shell',
      PYSPARK_PYTHON: python,
      SPARK_LOCAL_IP: '127.0.0.1',
    },
  )
  assert.deepEqual(await rowsIn(filesIn(join(spark, 'rows'), 'part-', '.parquet')), expected)
  torn(
    filesIn(join(spark, 'errors'), 'part-', '.json')
      .map((file) => readFileSync(file, 'utf8'))
      .join(''),
  )
  say(`Apache Beam and PySpark give the ${expected.length} rows of gantry batch`)
} finally {
  await server.kill()
  rmSync(dir, { recursive: true, force: true })
}
