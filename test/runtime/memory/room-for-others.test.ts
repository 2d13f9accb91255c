import { expect, it } from 'vitest'
import { roomForOthers } from '../../../src/runtime/memory/room-for-others.js'

const MiB = 1024 ** 2

function lookFor(firstMiB: number, availableMiB: number): ReturnType<typeof roomForOthers> {
  const taken = [100 * MiB, (100 + firstMiB) * MiB]
  return roomForOthers(
    'm',
    () => taken.shift() ?? 0,
    () => availableMiB * MiB,
  )
}

it('S11: refuses instances for which there is no memory, by what the first took, with how many there is room for', () => {
  expect(() => lookFor(500, 1600)(4)).toThrow(
    /instance_group\.count: model m has 5 instances of about 500 MiB, but only 1600 MiB are available for 4 more/,
  )
  lookFor(500, 1600)(3).end()
  lookFor(500, 0)(0).end()
})

it('takes some megabytes for an instance whose size cannot be seen', () => {
  expect(() => lookFor(-50, 100)(20)).toThrow(/about 8 MiB/)
})

it('S11: does not promise memory twice to models that load side by side', () => {
  const one = lookFor(500, 1600)(3)
  expect(() => lookFor(100, 1600)(2)).toThrow(/only 100 MiB are available for 2 more/)
  // An instance that is up is seen in what is available.
  one.kept()
  const other = lookFor(100, 1100)(1)
  other.end()
  one.end()
  one.end()
  lookFor(500, 1600)(3).end()
})
