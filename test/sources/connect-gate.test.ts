import { describe, expect, it } from 'vitest'
import { ConnectGate } from '../../src/sources/connect-gate.js'

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('ConnectGate', () => {
  it('lets few in at once, in the order they asked', async () => {
    const gate = new ConnectGate(2)
    const entered: number[] = []
    const leave = [1, 2, 3, 4].map((name) => gate.request(() => entered.push(name)))
    expect(entered).toEqual([])
    await settled()
    expect(entered).toEqual([1, 2])
    leave[1]?.()
    leave[1]?.()
    await settled()
    expect(entered).toEqual([1, 2, 3])
    expect(gate.inside).toBe(2)
    expect(gate.peak).toBe(2)
  })

  it('forgets who leaves before its turn', async () => {
    const gate = new ConnectGate(1)
    const entered: number[] = []
    const leave = [1, 2, 3].map((name) => gate.request(() => entered.push(name)))
    await settled()
    leave[1]?.()
    leave[0]?.()
    await settled()
    expect(entered).toEqual([1, 3])
    leave[2]?.()
    await settled()
    expect(gate.inside).toBe(0)
  })
})
