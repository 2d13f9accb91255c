import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { CardWatch, cardText } from '../bench/gpu/card.js'
import { largestThat } from '../bench/gpu/largest-that.js'
import { jobsOf, nameOf, parts, partSeconds, placesOf } from '../bench/gpu/plan.js'
import { cardsIn, type Line, Results } from '../bench/gpu/results.js'
import { tableOf } from '../bench/gpu/table.js'
import { h100 } from '../support/fake-nvidia-smi.js'
import { alive, descendants } from '../support/processes.js'
import { tempDir } from '../support/temp-dir.js'
import { until } from '../support/until.js'

const root = join(import.meta.dirname, '../..')

/** `npm run bench:gpu`, with a Python that is not there. */
class Bench {
  readonly lines: string[] = []
  stderr = ''
  readonly child: ChildProcess

  constructor(args: readonly string[]) {
    const command = ['--import', 'tsx', 'test/bench/gpu.bench.ts', ...args, '--python', 'no-such-python']
    this.child = spawn(process.execPath, command, { cwd: root })
    createInterface({ input: this.child.stdout! }).on('line', (line) => this.lines.push(line))
    this.child.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()))
    onTestFinished(() => void this.child.kill('SIGKILL'))
  }

  /** Names of the measurements that it told. */
  get told(): readonly string[] {
    return this.lines.flatMap((line) => (line.startsWith('{') ? (JSON.parse(line) as Line).name : []))
  }

  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'close')
    return this.child.exitCode
  }
}

const namesOf = (part: (typeof parts)[number]) => jobsOf(part, 'short').flatMap(placesOf).map(nameOf)

describe('npm run bench:gpu', () => {
  it('says in a line that there is no card, and ends well', () => {
    const env = { ...process.env, PATH: tempDir() }
    const command = ['--import', 'tsx', 'test/bench/gpu.bench.ts']
    const { status, stdout, stderr } = spawnSync(process.execPath, command, {
      cwd: root,
      env,
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([0, ''])
    expect(stderr).toMatch(/^skipped: no NVIDIA card 0 .*\n$/)
  })

  it('goes on where it was cut off, and leaves nothing behind', { timeout: 180_000 }, async () => {
    const out = join(tempDir(), 'results.jsonl')
    const args = ['ceilings', '--cpu', '--out', out]
    const first = new Bench(args)
    await until('a result', () => first.told.length > 0, 60_000)
    const started = descendants(first.child.pid!)
    const scratch = started.flatMap(({ command }) => /\S+\/gantry-bench-\S+/.exec(command) ?? [])[0] ?? ''
    expect(existsSync(scratch), scratch).toBe(true)
    first.child.kill('SIGTERM')
    expect(await first.ended()).toBe(143)
    await until('that all has ended', () => started.every(({ pid }) => !alive(pid)))
    expect(existsSync(scratch)).toBe(false)
    // A run that is killed may leave half a line.
    appendFileSync(out, '{"name":"half')

    const second = new Bench(['ceilings', 'scheduler', '--cpu', '--out', out])
    expect([await second.ended(), second.stderr]).toEqual([0, expect.stringContaining('no-such-python')])
    const all = [...first.told, ...second.told]
    const expected = [...namesOf('ceilings'), ...namesOf('scheduler')]
    expect(all).toEqual(expected.filter((name) => !name.includes('Python')))
    const { lines } = new Results(out, 'CPU, small sizes')
    expect(lines.map(({ name }) => name)).toEqual(all)
    for (const line of lines) expect(line['perSecond'], line.name).toBeGreaterThan(0)
    const saturated = lines.filter(({ part }) => part === 'scheduler')
    for (const line of saturated) expect(line['ofBare'], line.name).toBeGreaterThan(0)
    expect(second.lines).toContain('| question | figure | goal | command | machine |')
  })
})

describe('the plan', () => {
  it('has a name of its own for every measurement', () => {
    for (const form of ['full', 'short'] as const) {
      const names = parts.flatMap((part) => jobsOf(part, form).flatMap(placesOf).map(nameOf))
      expect(new Set(names).size).toBe(names.length)
    }
  })

  it('takes twelve minutes at most, and no part more than four', () => {
    const seconds = parts.map((part) => partSeconds[part])
    expect(Math.max(...seconds)).toBeLessThanOrEqual(240)
    expect(seconds.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(720)
  })

  it('has no job that its part has no time for', () => {
    for (const part of parts)
      for (const form of ['full', 'short'] as const)
        for (const job of jobsOf(part, form)) expect(job.usualSeconds).toBeLessThan(partSeconds[part])
  })
})

describe('the card', () => {
  /** Programs of the tests before those of the machine. */
  const withProgram = (name: string, text: string) => {
    vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined)
    onTestFinished(() => void vi.unstubAllEnvs())
    const dir = tempDir()
    writeFileSync(join(dir, name), text, { mode: 0o755 })
    const path = process.env['PATH']
    process.env['PATH'] = `${dir}:${path}`
    onTestFinished(() => void (process.env['PATH'] = path))
  }

  it('is told by nvidia-smi', async () => {
    withProgram('nvidia-smi', `#!/bin/sh\necho "${h100.row}"\n`)
    expect(await cardText(0, '580.159.03')).toBe('NVIDIA H100 80GB HBM3, driver 580.159.03')
    expect(await cardText(1)).toBeUndefined()
  })

  it('is not there where nvidia-smi fails', async () => {
    withProgram('nvidia-smi', '#!/bin/sh\necho "No devices were found"\nexit 6\n')
    expect(await cardText(0)).toBeUndefined()
  })

  it('is watched beside what is measured', async () => {
    withProgram(
      'nvidia-smi',
      `#!/bin/sh
echo "[N/A], 0, GPU-aaaaaaaa-1, 50, 81559, 1000, 200.50, 700.00, NVIDIA H100"
echo "[N/A], 0, GPU-aaaaaaaa-1, 70, 81559, 3000, 299.50, 700.00, NVIDIA H100"
echo "not a line of figures"
case "$*" in *--loop-ms*) exec sleep 60 ;; esac
`,
    )
    const watch = await CardWatch.start(0)
    onTestFinished(() => watch.stop())
    const from = Date.now()
    await until('a sample', () => watch.mib === 3000)
    const seen = { gpuPercent: 60, watts: 250, gpuMiB: 3000, gpuMiBLeast: 1000 }
    expect(watch.beside({ perSecond: 500 }, [[from, Date.now()]], 900)).toEqual({
      ...seen,
      joulesPer1000: 500,
      gpuMiBBefore: 900,
    })
    expect(watch.beside({ cameras: 3 }, [[from, Date.now()]])).toEqual(seen)
    expect(watch.beside({ perSecond: 500 }, [[from - 2_000, from - 1_000]])).toEqual({})
  })
})

describe('largestThat', () => {
  it('comes within a sixteenth, in few tries', async () => {
    const limits = fc.record({
      most: fc.integer({ min: 1, max: 300 }),
      from: fc.integer({ min: 1, max: 300 }),
      limit: fc.integer({ min: 0, max: 400 }),
    })
    await fc.assert(
      fc.asyncProperty(limits, async ({ most, from, limit }) => {
        let tries = 0
        const holds = async (count: number) => {
          tries += 1
          expect(count).toBeGreaterThan(0)
          expect(count).toBeLessThanOrEqual(most)
          return count <= limit
        }
        const { largest, exactTo } = await largestThat(holds, { from, most, isOver: () => false })
        expect(largest).toBeLessThanOrEqual(Math.min(limit, most))
        expect(largest + exactTo).toBeGreaterThan(Math.min(limit, most))
        expect(exactTo).toBeLessThanOrEqual(Math.max(1, largest / 16))
        expect(tries).toBeLessThanOrEqual(18)
      }),
    )
  })

  it('ends with what it knows when no time is left', async () => {
    let left = 2
    const isOver = () => left-- === 0
    const found = await largestThat(async (count) => count <= 50, { from: 16, most: 128, isOver })
    expect(found).toEqual({ largest: 32, exactTo: 97 })
  })
})

describe('results', () => {
  const place = { row: 'bare onnxruntime-node, fp32 416 x 416', column: 'batch 8' }

  it('keeps those of another card apart, and takes again what failed', () => {
    const path = join(tempDir(), 'deep', 'results.jsonl')
    const results = new Results(path, 'H100')
    results.add('ceilings', place, 'frames/s', { perSecond: 2235.123456 })
    results.add('ceilings', { row: 'other' }, '-', { error: 'it took more than 30 s' })
    const again = new Results(path, 'H100')
    expect(again.lines).toMatchObject([{ perSecond: 2235.1235, row: place.row }, { row: 'other' }])
    expect([again.has(nameOf(place)), again.has('other')]).toEqual([true, false])
    expect(new Results(path, 'H200').lines).toEqual([])
    new Results(path, 'H200').add('ceilings', place, 'frames/s', { perSecond: 1 })
    expect(cardsIn(path)).toEqual(['H100', 'H200'])
  })

  it('goes on behind half a line', () => {
    const path = join(tempDir(), 'results.jsonl')
    writeFileSync(path, '{"name":"ha')
    new Results(path, 'H100').add('ceilings', place, 'frames/s', { perSecond: 5 })
    expect(readFileSync(path, 'utf8')).toMatch(/^\{"name":"ha\n\{.*\}\n$/)
    expect(new Results(path, 'H100').has(nameOf(place))).toBe(true)
  })
})

describe('the table', () => {
  const line = (part: Line['part'], row: string, figures: Record<string, number | string>): Line => {
    const place = figures['column'] === undefined ? row : `${row}, ${figures['column']}`
    const fixed = { unit: 'frames/s', card: 'H100', machine: '16 x CPU', takenAt: '2026-01-01T00:00:00Z' }
    return { name: place, part, row, ...fixed, ...figures }
  }
  const saturated = 'saturated scheduler, fp16 416 x 416, batch 32, 4 instances, one size'

  it('says what was reached and what was missed', () => {
    const table = tableOf([
      line('ceilings', 'naive: one frame at a time, fp32 416 x 416', { perSecond: 261 }),
      line('ceilings', 'bare onnxruntime-node, fp32 416 x 416', { perSecond: 357.4, column: 'batch 1' }),
      line('ceilings', 'bare onnxruntime-node, fp32 416 x 416', { perSecond: 3071, column: 'batch 32' }),
      line('scheduler', saturated, { perSecond: 4265, ofBare: 0.793, gpuPercent: 58.2, joulesPer1000: 61.5 }),
      line('service', 'service, fp16 800 x 448, 64 cameras at 15 fps', {
        ...{ perSecond: 927, offered: 960, p50Ms: 58, p99Ms: 138, firstFrameMs: 4_200 },
      }),
      line('server', 'model server, fp32 416 x 416, 8 clients, batches of 32', {
        ...{ perSecond: 2900, p99Ms: 120, column: 'HTTP' },
      }),
      line('faults', 'kill -9 of the engine, fp32 800 x 448', {
        ...{ notReadyMs: 170, backMs: 4_100, framesMs: 5_300, provider: 'cuda' },
      }),
      line('faults', 'the card full at the start, fp32 800 x 448', { error: `x${'|'.repeat(400)}` }),
    ])
    const row = (question: string) => table.split('\n').find((text) => text.startsWith(`| ${question}`))
    expect(row('bare')).toBe(
      '| bare onnxruntime-node, fp32 416 x 416: batch 1 / batch 32 | 357 frames/s / 3071 frames/s | - | `npm run bench:gpu -- ceilings` | H100 |',
    )
    expect(row('saturated')).toContain(
      '| 4265 frames/s, 0.79 × bare, 16.3 × naive, GPU 58.2 %, 61.5 J/1,000 | ≥ 0.95 × bare, GPU ≥ 85 % (**missed**) |',
    )
    expect(row('most over one frame')).toContain('| 16.3 × | ≥ 20 × (**missed**) |')
    expect(row('service')).toContain('| 960 frames/s, p99 ≤ 60 ms (**missed**) |')
    expect(row('first frame')).toContain('| 4.20 s | ≤ 5 s |')
    expect(row('model server')).toContain('| 2900 frames/s, 0.94 × bare, p99 120 ms | ≥ 0.9 × bare |')
    expect(row('kill')).toContain('| not ready after 0.17 s, engine back after 4.10 s, frames after 5.30 s')
    const cells = table.split('\n').flatMap((text) => text.split(/(?<!\\)\|/))
    expect(Math.max(...cells.map((text) => text.trim().length))).toBeLessThanOrEqual(320)
  })

  it('has what each camera that is decoded on the card takes of its memory', () => {
    const row = 'service, fp32 800 x 448, 16 cameras at 5 fps'
    const figures = { perSecond: 80, offered: 80, p50Ms: 20, p99Ms: 35 }
    const table = tableOf([
      line('service', row, { ...figures, gpuMiB: 1_600 }),
      line('service', `${row}, NVDEC`, { ...figures, gpuMiB: 9_600 }),
      line('service', `${row}, NVDEC, scaled there`, { ...figures, gpuMiB: 10_400 }),
    ])
    expect(table).toContain('| memory of the card for each camera decoded there and scaled | 550 MiB |')
    expect(table).toContain('| memory of the card for each camera decoded there | 500 MiB |')
    const fallen = tableOf([
      line('service', row, { ...figures, gpuMiB: 1_600 }),
      line('service', `${row}, NVDEC`, {
        ...figures,
        gpuMiB: 1_600,
        hwaccelFallbacks: 16,
        decodedBy: '16 software',
      }),
    ])
    expect(fallen).toContain('decoded: 16 software')
    expect(fallen).not.toContain('memory of the card')
  })
})
