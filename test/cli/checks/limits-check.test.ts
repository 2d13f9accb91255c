import { expect, it } from 'vitest'
import { checkLimits, systemLimits, type SystemLimits } from '../../../src/cli/checks/limits-check.js'
import { loadPipeline } from '../../../src/config/load.js'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { tempDir } from '../../support/temp-dir.js'

function plant(cameras: number, url = 'rtsp://127.0.0.1/x') {
  const file = join(tempDir(), 'plant.yaml')
  const list = Array.from({ length: cameras }, (_, index) => ({ id: `c${index}`, url }))
  const server = { maxStreamClients: 10 }
  writeFileSync(
    file,
    stringify({ apiVersion: 'gantry/v1', server, inference: { instances: 2 }, cameras: list }),
  )
  return loadPipeline(file, { env: {} }).config
}

const limits = (openFiles?: number, processes?: number, cgroupPids?: number): SystemLimits => ({
  openFiles: { soft: openFiles, hard: openFiles },
  processes: { soft: processes, hard: processes },
  cgroupPids,
})

it.each([
  [
    'the files are too few',
    45,
    limits(120),
    'open files',
    /may open 120 files/,
    /^LimitNOFILE=\d+ .* ulimit -n \d+$/,
  ],
  ['the processes are too few', 45, limits(4_096, 100), 'processes', /^100 processes/, /^LimitNPROC=\d+/],
  [
    'the container allows too few',
    45,
    limits(4_096, 9_999, 64),
    'processes',
    /^64 processes/,
    /^TasksMax=\d+/,
  ],
])('R23: warns when %s', (_, cameras, given, subject, detail, fix) => {
  expect(checkLimits(plant(cameras), given)).toMatchObject([
    {
      subject,
      state: 'warning',
      detail: expect.stringMatching(detail) as string,
      fix: expect.stringMatching(fix) as string,
    },
  ])
})

it.each([
  ['a few cameras', plant.bind(undefined, 3), limits(256, 512)],
  ['pictures that are pushed', plant.bind(undefined, 45, 'push:'), limits(120)],
  ['a system without limits', plant.bind(undefined, 64), limits()],
])('is content with %s', (_, config, given) => {
  expect(checkLimits(config(), given)).toMatchObject([{ subject: 'limits', state: 'ok' }])
})

it('knows the limits of this machine', () => {
  expect(systemLimits().openFiles.soft).toBeGreaterThan(0)
})
