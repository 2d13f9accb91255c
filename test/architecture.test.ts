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
})
