import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseModelConfig } from '../../../src/repository/model-config-text.js'
import { type Claim, instanceClaims } from '../../../src/runtime/rate-limit/claims.js'
import { RateLimiter } from '../../../src/runtime/rate-limit/rate-limiter.js'
import { resourcePools } from '../../../src/runtime/rate-limit/resource-pools.js'

const claims = (text: string) => instanceClaims(parseModelConfig(text, 'c'))
const need = (count: number, priority = 1, device?: string): Claim => ({
  needs: [{ name: 'R', device, count }],
  priority,
})

describe('the claims of a model', () => {
  it('are one for each instance, on the device where it is', () => {
    const text =
      'instance_group { kind: KIND_CPU count: 2 rate_limiter { resources { name: "R" count: 3 } priority: 4 } } ' +
      'instance_group { kind: KIND_GPU count: 1 gpus: 0 gpus: 1 rate_limiter { resources { name: "G" count: 1 global: true } resources { name: "R" count: 2 } } }'
    const global = { name: 'G', device: undefined, count: 1 }
    expect(claims(text)).toEqual([
      { needs: [{ name: 'R', device: 'cpu', count: 3 }], priority: 4 },
      { needs: [{ name: 'R', device: 'cpu', count: 3 }], priority: 4 },
      { needs: [global, { name: 'R', device: 'gpu0', count: 2 }], priority: 1 },
      { needs: [global, { name: 'R', device: 'gpu1', count: 2 }], priority: 1 },
    ])
  })

  it('are none where no group names a resource', () => {
    expect(claims('instance_group { kind: KIND_CPU rate_limiter { priority: 2 } }')).toEqual([])
  })
})

describe('the resources', () => {
  it('are as much as the largest claim, on each device, or what was set', () => {
    const all = [need(2, 1, 'cpu'), need(5, 1, 'cpu'), need(3, 1, 'gpu0')]
    expect(Object.fromEntries(resourcePools(all, []))).toEqual({ 'R@cpu': 5, 'R@gpu0': 3 })
    const limits = [
      { name: 'R', count: 10 },
      { name: 'R', count: 7, device: 'gpu0' },
    ]
    expect(Object.fromEntries(resourcePools(all, limits))).toEqual({ 'R@cpu': 10, 'R@gpu0': 7 })
  })

  it('refuse a claim that could never run, and one name of two kinds', () => {
    expect(() => resourcePools([need(3)], [{ name: 'R', count: 2 }])).toThrow(
      'Resource count for "R" is limited to 2 which will prevent scheduling of one or more model instances, the minimum required count is 3',
    )
    expect(() => resourcePools([need(1), need(1, 1, 'cpu')], [])).toThrow(
      'Resource "R" is present as both global and device-specific resource',
    )
  })
})

describe('RateLimiter', () => {
  it('lets a run wait until what it needs is free', async () => {
    const limiter = new RateLimiter()
    const a = limiter.register([need(1)])
    const b = limiter.register([need(1)])
    const release = await a.take(0)
    let ran = false
    const second = b.take(0)?.then((done) => {
      ran = true
      return done
    })
    await Promise.resolve()
    expect(ran).toBe(false)
    release?.()
    expect(await second).toBeTypeOf('function')
  })

  it('asks nothing of instances that need nothing', () => {
    expect(new RateLimiter().register([]).take(0)).toBeUndefined()
  })

  it('gives an instance of priority 2 half the turns of one of priority 1', async () => {
    const limiter = new RateLimiter()
    const models = { one: limiter.register([need(1, 1)]), two: limiter.register([need(1, 2)]) }
    const ran = { one: 0, two: 0 }
    const total = () => ran.one + ran.two
    const loop = async (name: 'one' | 'two') => {
      while (total() < 300) {
        const release = await models[name].take(0)
        ran[name]++
        // So that both wait when it is free again.
        await new Promise((resolve) => setImmediate(resolve))
        release?.()
      }
    }
    await Promise.all([loop('one'), loop('two')])
    expect(ran.one / ran.two).toBeCloseTo(2, 1)
  })

  it('lets go of who waits when their model is closed, and goes on for the others', async () => {
    const limiter = new RateLimiter()
    const [a, b, c] = [limiter.register([need(1)]), limiter.register([need(1)]), limiter.register([need(1)])]
    const release = await a.take(0)
    const [waitsInB, waitsInC] = [b.take(0), c.take(0)]
    b.close()
    b.close()
    await waitsInB
    release?.()
    await waitsInC
  })

  it('never gives out more than there is, and leaves nobody waiting', async () => {
    const count = fc.integer({ min: 1, max: 4 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.record({ count, priority: count }), { minLength: 1, maxLength: 3 }), {
          minLength: 1,
          maxLength: 4,
        }),
        async (models) => {
          const limiter = new RateLimiter()
          const registered = models.map((instances) =>
            limiter.register(instances.map((each) => need(each.count, each.priority))),
          )
          const most = Math.max(...models.flat().map((each) => each.count))
          let used = 0
          const runs = models.flatMap((instances, model) =>
            instances.flatMap((each, index) =>
              Array.from({ length: 5 }, async () => {
                const release = await registered[model]?.take(index)
                used += each.count
                expect(used).toBeLessThanOrEqual(most)
                await Promise.resolve()
                used -= each.count
                release?.()
              }),
            ),
          )
          await Promise.all(runs)
          expect(used).toBe(0)
        },
      ),
      { numRuns: 100 },
    )
  })
})
