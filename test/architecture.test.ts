import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  importCycle,
  importsOf,
  namesExportedTwice,
  openSwitches,
  packagesLoadedWith,
  rooms,
  roomsImportedBy,
  sourceFiles,
  strayImports,
  testFiles,
  textOf,
} from './support/imports.js'

/** The floors of the house: a room imports only what stands before it. */
const floors = [
  'errors',
  'config',
  'vision',
  'messages',
  'metrics',
  'lifecycle',
  'tracing',
  'buckets',
  'tensors',
  'repository',
  'kserve',
  'runtime',
  'backends',
  'detector',
  'ensemble',
  'serving',
  'store',
  'sources',
  'cache',
  'delivery',
  'coverage',
  'cameras',
  'cluster',
  'tools',
  'api',
  'processes',
  'cli',
]

/** Rooms on one floor, each of which could be another program. */
const apart = ['sources', 'cache', 'delivery', 'coverage']

describe('src', () => {
  it('has a floor for every room', () => {
    expect(rooms()).toEqual([...floors].sort())
  })

  it.each(floors)('%s imports only rooms above it', (room) => {
    const above = floors.slice(0, floors.indexOf(room))
    const allowed = apart.includes(room) ? above.filter((other) => !apart.includes(other)) : above
    expect(roomsImportedBy(room).filter((other) => !allowed.includes(other))).toEqual([])
  })

  it('delivers by code that knows no far side', () => {
    const generic = sourceFiles().filter((file) => dirname(file) === 'delivery')
    expect(generic.length).toBeGreaterThan(5)
    const ofOneFarSide = /^delivery\/[^/]+\//
    expect(generic.filter((file) => importsOf(file).some((name) => ofOneFarSide.test(name)))).toEqual([])
  })

  it('describes the answers that the page reads by files that do not know the service', () => {
    const read = readFileSync('web/src/api/types.ts', 'utf8').matchAll(/src\/(api\/[\w-]+)\.js'/g)
    const schemas = [...read].map(([, name = '']) => `${name}.ts`)
    expect(schemas.length).toBeGreaterThan(2)
    expect(schemas.filter((file) => importsOf(file).includes('api/gantry.ts'))).toEqual([])
  })

  it('has no files that import each other in a circle', () => {
    expect(importCycle()).toEqual([])
  })

  it('passes over no message that it does not know', () => {
    expect(openSwitches()).toEqual([])
  })

  it('ends what has work in hand by one word', () => {
    const others =
      /^ +(?:async )?(?:(?:shutdown|dispose|finish|quit|halt|destroy)\(|(?:close|end|terminate|kill)\((?:drain|within|for)Ms: )/m
    expect(sourceFiles().filter((file) => others.test(textOf(file)))).toEqual([])
  })

  it('exports no name from two files', () => {
    expect(namesExportedTwice()).toEqual([])
  })

  it('imports nothing from outside of src', () => {
    expect(strayImports()).toEqual([])
  })

  it('knows fluent-ffmpeg in exactly one file', () => {
    const users = sourceFiles().filter((file) => importsOf(file).includes('fluent-ffmpeg'))
    expect(users.length, users.join(', ')).toBe(1)
  })

  it('loads ONNX Runtime in one file, which first tells it to keep still', () => {
    const users = sourceFiles().filter((file) => importsOf(file).includes('onnxruntime-node'))
    expect(users).toEqual(['backends/onnxruntime/onnxruntime.ts'])
    expect(importsOf('backends/onnxruntime/onnxruntime.ts')[0]).toBe('lifecycle/no-telemetry.ts')
  })

  it('loads the library of traces in a thread of its own', () => {
    const users = sourceFiles().filter((file) => importsOf(file).includes('tracing/otel-spans.ts'))
    expect(users).toEqual(['tracing/tracing-worker.ts'])
    expect(packagesLoadedWith('tracing/tracing-worker.ts')).toContain('@opentelemetry/sdk-trace')
  })

  it('knows koffi, which may be absent, in one file', () => {
    const users = sourceFiles().filter((file) => importsOf(file).includes('koffi'))
    expect(users).toEqual(['backends/onnxruntime/c-api/native-calls.ts'])
  })

  it.each([
    [
      'processes/control/run-service.ts',
      [
        '@opentelemetry/api',
        '@opentelemetry/sdk-trace',
        ...['ioredis', 'kafkajs', 'mqtt', 'onnxruntime-node', 'protobufjs', 'sharp', 'undici', 'ws'],
      ],
    ],
    ['processes/model-server/main.ts', ['@opentelemetry/api', '@opentelemetry/sdk-trace']],
    ['processes/engine/main.ts', ['@grpc/grpc-js', 'fastify', 'onnxruntime-node', 'sharp', 'zod']],
    ['detector/detector-worker.ts', ['pino', 'protobufjs', 'sharp', 'zod']],
    ['processes/stream/main.ts', ['fastify', 'prom-client', 'protobufjs', 'sharp']],
  ])('loads with %s nothing that most services never use there', (entry, unused) => {
    const loaded = packagesLoadedWith(entry)
    expect(loaded.length).toBeGreaterThan(0)
    expect(loaded.filter((name) => [...unused, 'pino-pretty'].includes(name))).toEqual([])
  })

  it('keeps libraries still before it imports anything, in each file that begins a process', () => {
    const mains = sourceFiles().filter((file) => /(^|\/)main\.ts$/.test(file))
    expect(mains.length).toBeGreaterThan(3)
    for (const main of mains) expect([main, importsOf(main)[0]]).toEqual([main, 'lifecycle/no-telemetry.ts'])
  })

  it('catches warnings of Node before it imports anything else, in each file that begins a process or a thread', () => {
    const begins = sourceFiles().filter((file) => /(^|\/)main\.ts$|-worker\.ts$/.test(file))
    expect(begins.length).toBeGreaterThan(8)
    for (const file of begins) {
      const first = importsOf(file).find((name) => name !== 'lifecycle/no-telemetry.ts')
      expect([file, first]).toEqual([file, 'lifecycle/catch-warnings.ts'])
    }
  })
})

/** Folders of tests of more than one room, of what lies outside of `src/`, and of what tests need. */
const besideRooms = [
  'bench',
  'clients',
  'e2e',
  'faults',
  'fuzz',
  'golden',
  'ops',
  'sim',
  'soak',
  'support',
  'triton-qa',
  'web',
]

describe('test', () => {
  const folders = new Set(sourceFiles().map((file) => dirname(file)))
  const ofRooms = testFiles().filter((file) => !besideRooms.includes(file.split('/')[0] ?? ''))

  it('has a folder of src for every folder', () => {
    expect(ofRooms.length).toBeGreaterThan(100)
    expect(ofRooms.filter((file) => !folders.has(dirname(file)))).toEqual([])
  })

  it('has no test that lies elsewhere than the file whose name it bears', () => {
    const sources = sourceFiles()
    const twin = (file: string) => file.replace('.test.ts', '.ts')
    const astray = ofRooms
      .filter((file) => !sources.includes(twin(file)))
      .flatMap((file) =>
        sources
          .filter((source) => basename(source) === basename(twin(file)))
          .map((source) => `test/${file} for src/${source}`),
      )
    expect(astray).toEqual([])
  })
})

it('docs/architecture.md has a row for every room, in the order of the floors', () => {
  const page = readFileSync(join(import.meta.dirname, '../docs/architecture.md'), 'utf8')
  const rows = page.slice(page.indexOf('\n## Rooms')).matchAll(/^\| ((?:`[a-z.]+\/?` ?)+)\|/gm)
  const named = [...rows].flatMap(([, cell = '']) => [...cell.matchAll(/`([a-z]+)[./a-z]*`/g)])
  expect(named.map(([, room]) => room)).toEqual(floors)
})
