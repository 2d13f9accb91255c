import { describe, expect, it } from 'vitest'
import {
  importCycle,
  importsOf,
  rooms,
  roomsImportedBy,
  sourceFiles,
  strayImports,
} from './support/imports.js'

/** Words that all rooms share. Each may use those before it. */
const vocabulary = ['errors', 'config', 'frames', 'detections', 'events', 'metrics', 'lifecycle']

/** Rooms that put the others together. Nothing imports them back. */
const assemblies = ['engine', 'control', 'server', 'cli']

const mayImport: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(vocabulary.map((room, index) => [room, vocabulary.slice(0, index)])),
  sources: ['config', 'errors', 'frames', 'lifecycle', 'metrics'],
  inference: ['config', 'detections', 'errors', 'frames', 'lifecycle', 'metrics'],
  ensemble: ['config', 'detections', 'errors', 'frames', 'inference', 'lifecycle', 'metrics'],
  serving: [
    'cache',
    'config',
    'detections',
    'ensemble',
    'errors',
    'frames',
    'inference',
    'lifecycle',
    'metrics',
  ],
  sinks: ['config', 'detections', 'errors', 'events', 'frames', 'lifecycle', 'metrics'],
  cache: ['config', 'detections', 'errors', 'events', 'frames', 'lifecycle', 'metrics'],
  ...Object.fromEntries(assemblies.map((room) => [room, rooms()])),
}

describe('src', () => {
  it.each(rooms())('%s imports only the rooms it may', (room) => {
    expect(mayImport, `give src/${room} its rule in this test`).toHaveProperty(room)
    expect(mayImport[room]).toEqual(expect.arrayContaining(roomsImportedBy(room)))
  })

  it('has no files that import each other in a circle', () => {
    expect(importCycle()).toEqual([])
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
    expect(users).toEqual(['inference/onnxruntime.ts'])
    expect(importsOf('inference/onnxruntime.ts')[0]).toBe('lifecycle/no-telemetry.ts')
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
