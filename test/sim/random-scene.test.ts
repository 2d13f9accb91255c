import { describe, expect, it } from 'vitest'
import { randomScene } from '../../sim/dataset/random-scene.js'

describe('random scenes', () => {
  it('are the same for the same seed and index', () => {
    expect(randomScene(5, 3)).toEqual(randomScene(5, 3))
    expect(randomScene(5, 3)).not.toEqual(randomScene(6, 3))
  })

  it('show the sites that are asked for', () => {
    const sites = Array.from(
      { length: 30 },
      (_, index) => randomScene(5, index, { sites: ['dock', 'gate'] }).site,
    )
    expect(new Set(sites)).toEqual(new Set(['dock', 'gate']))
  })

  it('have workers with their backs to the camera, most of them in helmets', () => {
    const workers = Array.from({ length: 60 }, (_, index) => randomScene(5, index).people)
      .flat()
      .filter(({ id }) => id.startsWith('worker-'))
    const helmets = workers.filter(({ headgear }) => headgear.kind === 'helmet')
    expect(workers.length).toBeGreaterThan(40)
    expect(helmets.length / workers.length).toBeGreaterThan(0.3)
    expect(helmets.length).toBeLessThan(workers.length)
  })

  it('have cranes both among the other machines and behind them all', () => {
    const machines = Array.from(
      { length: 30 },
      (_, index) => randomScene(5, index, { sites: ['yard'] }).machines,
    ).flat()
    const depthsM = (ofCranes: boolean): number[] =>
      machines.filter(({ kind }) => (kind === 'crane') === ofCranes).map(({ start }) => start[1])
    expect(Math.max(...depthsM(true))).toBeGreaterThan(-3)
    expect(Math.min(...depthsM(true))).toBeLessThan(Math.min(...depthsM(false)) - 2)
  })

  it('have presses that face the front of their line, three in four of them, and other machines that face any way', () => {
    const machines = Array.from(
      { length: 80 },
      (_, index) => randomScene(5, index, { sites: ['press-line'] }).machines,
    ).flat()
    const towardsFront = (ofPresses: boolean): number => {
      const some = machines.filter(({ kind }) => (kind === 'press') === ofPresses)
      return some.filter(({ faceDeg }) => faceDeg <= 30 || faceDeg >= 330).length / some.length
    }
    expect(towardsFront(true)).toBeGreaterThan(0.65)
    expect(towardsFront(true)).toBeLessThan(0.9)
    expect(towardsFront(false)).toBeLessThan(0.4)
    expect(machines.filter(({ color }) => color === 'teal').map(({ kind }) => kind)).toContain('press')
  })

  it('have caps in every colour of a helmet, two or more to five helmets, where headgear is the subject', () => {
    const workers = Array.from(
      { length: 20 },
      (_, index) => randomScene(5, index, { subject: 'headgear' }).people,
    )
      .flat()
      .filter(({ id }) => id.startsWith('worker-'))
    const colorsOf = (wanted: string): Set<string> =>
      new Set(
        workers.filter(({ headgear }) => headgear.kind === wanted).map(({ headgear }) => headgear.color),
      )
    const caps = workers.filter(({ headgear }) => headgear.kind === 'cap').length
    const helmets = workers.filter(({ headgear }) => headgear.kind === 'helmet').length
    expect(workers).toHaveLength(20 * 7)
    expect(caps / helmets).toBeGreaterThan(0.4)
    expect(colorsOf('helmet').size).toBeGreaterThan(3)
    for (const color of colorsOf('helmet')) expect(colorsOf('cap')).toContain(color)
  })
})
