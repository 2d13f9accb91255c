import { describe, expect, it } from 'vitest'
import { libraryPackages } from '../../../src/cli/gpu/cuda-packages.js'
import { roomProblem, sizeOf } from '../../../src/cli/gpu/install-gpu.js'

describe('room', () => {
  it('is that of all packages and twice of the largest download, which goes when it is unpacked', () => {
    const [one, other] = [libraryPackages[13][0]!, libraryPackages[13][1]!]
    expect(sizeOf([one, other])).toEqual({
      downloadMb: one.downloadMb + other.downloadMb,
      neededMb: one.unpackedMb + other.unpackedMb + 2 * Math.max(one.downloadMb, other.downloadMb),
    })
    expect(sizeOf([])).toEqual({ downloadMb: 0, neededMb: 0 })
  })

  it('R39: is asked for before anything is fetched', () => {
    expect(roomProblem(3_000, 3_000, '/opt/gantry/.cuda')).toBeUndefined()
    expect(roomProblem(3_200, 450, '/opt/gantry/.cuda')).toMatchObject({
      code: 'GANTRY_ENVIRONMENT',
      message: '3.2 GB are needed in /opt/gantry/.cuda, and 0.5 GB are free',
    })
  })
})
