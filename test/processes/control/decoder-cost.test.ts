import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DecoderCost, firstDecoderBytes } from '../../../src/processes/control/decoder-cost.js'

const mib = 1024 ** 2
const settledMs = 10_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function costOf() {
  const card = { usedBytes: (1_000 * mib) as number | undefined, dead: new Set<string>() }
  const told: number[] = []
  const cost = new DecoderCost({
    settledMs,
    isLive: (cameraId) => !card.dead.has(cameraId),
    usedBytes: () => card.usedBytes,
    measured: (bytes) => void told.push(bytes / mib),
  })
  /** So many begin at once, and take so much together. */
  const begin = (takeMiB: number, ...cameras: readonly string[]) => {
    cameras.forEach((camera, at) => cost.began(camera, at === 0 ? card.usedBytes : undefined))
    card.usedBytes = (card.usedBytes ?? 0) + takeMiB * mib
    vi.advanceTimersByTime(settledMs)
  }
  return { card, cost, told, begin }
}

describe('what a decoder takes of a card', () => {
  it('is what was measured on another one until it has been measured here', () => {
    const { cost, told } = costOf()
    expect([cost.eachBytes, told]).toEqual([firstDecoderBytes, []])
  })

  it('is the share of those that began together', () => {
    const { cost, told, begin } = costOf()
    begin(1_200, 'a', 'b', 'c')
    expect([cost.eachBytes / mib, told]).toEqual([400, [400]])
  })

  it('is the middle of what was seen, and told when it differs', () => {
    const { cost, told, begin } = costOf()
    for (const each of [400, 410, 1_500, 405, 395]) begin(each, 'a')
    expect([cost.eachBytes / mib, told]).toEqual([405, [400]])
  })

  it('is not taken from what was something else: models, a camera that is not live, what ended meanwhile', () => {
    const { card, cost, told, begin } = costOf()
    begin(9_000, 'a')
    begin(-2_000, 'a')
    card.dead.add('b')
    begin(800, 'a', 'b')
    cost.began('a', card.usedBytes)
    cost.forget()
    card.usedBytes = (card.usedBytes ?? 0) + 500 * mib
    vi.advanceTimersByTime(settledMs)
    cost.began('a', card.usedBytes)
    card.usedBytes = undefined
    vi.advanceTimersByTime(settledMs)
    expect([cost.eachBytes, told]).toEqual([firstDecoderBytes, []])
  })
})
