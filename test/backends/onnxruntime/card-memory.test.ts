import { describe, expect, it } from 'vitest'
import { CardMemory, takenBy } from '../../../src/backends/onnxruntime/card-memory.js'

const work = () => Promise.resolve('done')

describe('what a step takes of a card', () => {
  it('is what is used more behind it', async () => {
    const used = [1_000, 1_300, 1_300, 1_250]
    const memory = new CardMemory(1, (deviceId) => Promise.resolve(deviceId === 1 ? used.shift() : undefined))
    expect(await memory.takenBy(work)).toEqual({ result: 'done', bytes: 300 })
    // Others gave some back meanwhile.
    expect(await takenBy(memory, work)).toEqual({ result: 'done', bytes: 0 })
  })

  it('is not known where nothing tells, and then is not asked again', async () => {
    let looks = 0
    const memory = new CardMemory(0, () => {
      looks += 1
      return Promise.resolve(undefined)
    })
    for (let step = 0; step < 3; step += 1)
      expect(await memory.takenBy(work)).toEqual({ result: 'done', bytes: undefined })
    expect(looks).toBe(1)
    expect(await takenBy(undefined, work)).toEqual({ result: 'done', bytes: undefined })
  })

  it('is not looked for behind a step that fails', async () => {
    const memory = new CardMemory(0, () => Promise.resolve(1))
    await expect(memory.takenBy(() => Promise.reject(new Error('no room')))).rejects.toThrow('no room')
  })
})
