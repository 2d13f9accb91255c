import { expect, it } from 'vitest'
import { enoughMemory } from '../../../src/serving/memory/enough-memory.js'

const MiB = 1024 ** 2

function lookFor(firstMiB: number, availableMiB: number): (others: number) => void {
  const resident = [100 * MiB, (100 + firstMiB) * MiB]
  return enoughMemory(
    'm',
    () => resident.shift() ?? 0,
    () => availableMiB * MiB,
  )
}

it('S11: refuses instances for which there is no memory, by what the first took, with how many there is room for', () => {
  expect(() => lookFor(500, 1600)(4)).toThrow(
    /instance_group\.count: model m has 5 instances of about 500 MiB, but only 1600 MiB are available for 4 more/,
  )
  expect(() => lookFor(500, 1600)(3)).not.toThrow()
  expect(() => lookFor(500, 0)(0)).not.toThrow()
})

it('takes some megabytes for an instance whose size cannot be seen', () => {
  expect(() => lookFor(-50, 100)(20)).toThrow(/about 8 MiB/)
})
