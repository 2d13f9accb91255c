import { expect, it } from 'vitest'
import { gpuReading, gpuReadings } from '../../src/metrics/gpu-reading.js'
import { h100 } from '../support/fake-nvidia-smi.js'

const uuid = h100.uuid
const none = {
  utilization: null,
  memoryTotalBytes: null,
  memoryUsedBytes: null,
  powerWatts: null,
  powerLimitWatts: null,
}

it('reads a line of a card in the units of the metrics', () => {
  expect(gpuReading(h100.row)).toEqual({
    index: 0,
    uuid,
    name: 'NVIDIA H100 80GB HBM3',
    utilization: 0.45,
    memoryTotalBytes: 85_520_809_984,
    memoryUsedBytes: 1_265_631_232,
    powerWatts: 318.42,
    powerLimitWatts: 700,
    reason: '',
  })
})

it.each([
  [
    'an old GeForce',
    `1, ${uuid}, [Not Supported], 2004, 0, [Not Supported], [Not Supported], GeForce GTX 770`,
  ],
  ['a newer driver', `1, ${uuid}, [N/A], 2004, 0, [N/A], [N/A], GeForce GTX 770`],
  ['a single figure that fails', `1, ${uuid}, [N/A], 2004, 0, [Unknown Error], ERR!, GeForce GTX 770`],
])('leaves out what it is not told of: %s', (_, line) => {
  const memory = { memoryTotalBytes: 2_004 * 1024 ** 2, memoryUsedBytes: 0 }
  expect(gpuReading(line)).toEqual({
    ...none,
    ...memory,
    index: 1,
    uuid,
    name: 'GeForce GTX 770',
    reason: '',
  })
})

it('takes a card in parts (MIG), whose figures a container may not see, for one that is well', () => {
  const denied = '[Insufficient Permissions]'
  const line = `0, ${uuid}, [N/A], ${denied}, ${denied}, 87.10, 400.00, NVIDIA A100-SXM4-80GB`
  expect(gpuReading(line)).toMatchObject({ ...none, powerWatts: 87.1, powerLimitWatts: 400, reason: '' })
})

it.each([
  [`0, ${uuid}, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], X`, 'GPU is lost'],
  [`0, ${uuid}, [GPU requires reset], 24576, 0, 20.00, 350.00, X`, 'GPU requires reset'],
  [`0, ${uuid}, [Unknown Error], [Unknown Error], [Unknown Error], [N/A], [N/A], X`, 'Unknown Error'],
  [`0, ${uuid}, ERR!, ERR!, ERR!, ERR!, ERR!, X`, 'ERR!'],
])('says what is wrong with a card: %s', (line, reason) => {
  expect(gpuReading(line)).toMatchObject({ uuid, reason })
})

it('knows a card that is lost altogether by its number alone', () => {
  const lost = Array(7).fill('[GPU is lost]').join(', ')
  expect(gpuReading(`3, ${lost}`)).toMatchObject({
    ...none,
    index: 3,
    uuid: undefined,
    reason: 'GPU is lost',
  })
})

it('takes commas of a name for part of it, and no units, exponents or signs for figures', () => {
  expect(gpuReading(`0, ${uuid}, 45 %, -1, 1e3, 1_0, NaN, Quadro, the second`)).toMatchObject({
    ...none,
    name: 'Quadro, the second',
  })
})

it.each([
  '',
  'No devices were found',
  'Failed to initialize NVML: Driver/library version mismatch',
  "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
  'Unable to determine the device handle for GPU0000:CB:00.0: Unknown Error',
  'Field "power.drew" is not a valid field to query.',
  'index, uuid, utilization.gpu [%], memory.total [MiB], memory.used [MiB], power.draw [W], power.limit [W], name',
  `0, ${uuid}, 45, 81559`,
  '\u0000\ufffd\ufffd,,,,,,,,,',
])('takes no other line for a card: %s', (line) => {
  expect(gpuReading(line)).toBeUndefined()
})

it('takes nothing for a uuid that would not do as a label', () => {
  for (const odd of ['', 'GPU', 'GPU-"x"', 'GPU-5e3a1f0c\\', '12345678'])
    expect(gpuReading(`0, ${odd}, 1, 2, 3, 4, 5, X`)?.uuid).toBeUndefined()
})

it('finds the lines of cards among others', () => {
  const text = `warning: infoROM is corrupted at gpu 0000:00:1E.0\n${h100.row}\r\n1, ${uuid}, 1, 2, 3, 4, 5, X\n`
  expect(gpuReadings(text).map(({ index, name }) => [index, name])).toEqual([
    [0, 'NVIDIA H100 80GB HBM3'],
    [1, 'X'],
  ])
})
