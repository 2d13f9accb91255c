import { describe, expect, it } from 'vitest'
import { failuresIn, ProviderUses } from '../../../src/backends/onnxruntime/provider-uses.js'
import { recordingLog } from '../../support/silent-log.js'

const full = (gib: number) => ({
  provider: 'cuda' as const,
  reason: `GPU 1 is out of memory: ${gib} of 15 GiB used`,
  installed: true,
})
const absent = { provider: 'tensorrt' as const, reason: 'is not installed', installed: false }
const onCpu = (gib: number) => ({ provider: 'cpu' as const, notes: [full(gib), absent] })
const onGpu = { provider: 'cuda' as const, notes: [] }

const ofModel = { model: 'm', version: '1' }
const fails = { ...ofModel, provider: 'cuda', device: '1', failure: full(14.2).reason }

describe('R45: ProviderUses', () => {
  it('are what runs a model, and what fails to, whatever the number of instances', () => {
    const uses = new ProviderUses(recordingLog().log)
    const load = uses.open('m', '1')
    for (const instance of [0, 1, 2]) load.started(instance, onCpu(14.2), 1)
    expect(uses.all).toEqual([{ ...ofModel, provider: 'cpu', device: '', failure: '' }, fails])
    expect(uses.unused).toEqual([fails])
    expect(failuresIn(uses.all)).toEqual(['cuda: GPU 1 is out of memory: 14.2 of 15 GiB used'])
  })

  it('are told once for each change: not for each instance, nor for each load', () => {
    const { log, lines } = recordingLog()
    const uses = new ProviderUses(log)
    const told = () => lines.splice(0).map(({ level, msg, note }) => [level, msg, note])
    const load = uses.open('m', '1')
    load.started(0, onCpu(14.2), 1)
    load.started(1, onCpu(14.3), 1)
    const warning = 'execution provider fails, another one runs the model'
    expect(told()).toEqual([
      [40, warning, 'cuda: GPU 1 is out of memory: 14.2 of 15 GiB used'],
      [30, 'execution provider is not used', 'tensorrt: is not installed'],
    ])
    uses.open('m', '1').started(0, onCpu(14.9), 1)
    expect(told()).toEqual([])
    uses.open('m', '1').started(0, onGpu, 1)
    expect(told()).toEqual([
      [30, 'execution provider runs the model again', 'cuda: GPU 1 is out of memory: 14.9 of 15 GiB used'],
    ])
    uses.open('m', '1').started(0, onCpu(14.9), 1)
    expect(told()[0]).toEqual([40, warning, 'cuda: GPU 1 is out of memory: 14.9 of 15 GiB used'])
  })

  it('are those of the load that runs, from its first instance on', () => {
    const uses = new ProviderUses(recordingLog().log)
    const before = uses.open('m', '1')
    before.started(0, onCpu(14.2), 1)
    const after = uses.open('m', '1')
    expect(uses.unused).toHaveLength(1)
    after.started(0, onGpu, 1)
    before.closed()
    expect(uses.all).toEqual([{ ...ofModel, provider: 'cuda', device: '1', failure: '' }])
    after.closed()
    expect(uses.all).toEqual([])
  })

  it('R45: are unused only where they run no instance', () => {
    const uses = new ProviderUses(recordingLog().log)
    const load = uses.open('m', '1')
    load.started(0, onGpu, 1)
    load.failed(1, ['cuda'], 1, full(14.2).reason)
    expect(failuresIn(uses.all)).toHaveLength(1)
    expect(uses.unused).toEqual([])
  })

  it('keep why a load failed until the next one', () => {
    const uses = new ProviderUses(recordingLog().log)
    const failed = uses.open('m', '1')
    failed.failed(0, ['cuda'], 1, full(14.2).reason)
    failed.closed()
    expect(uses.all).toEqual([fails])
    uses.open('m', '1').started(0, onGpu, 1)
    expect(uses.unused).toEqual([])
  })
})
