// A process that owns one camera, for tests that kill it. Argument: URL. Prints "live" with the first frame.
import { cameraSchema } from '../../dist/config/camera.js'
import { FramePool } from '../../dist/vision/frame-pool.js'
import { createLog } from '../../dist/lifecycle/log.js'
import { AddressPolicy } from '../../dist/lifecycle/address-policy.js'
import { ConnectGate } from '../../dist/sources/connect-gate.js'
import { createSource } from '../../dist/sources/create-source.js'

const pool = new FramePool(160 * 160 * 3, 2)
let seq = 0
const source = await createSource(cameraSchema.parse({ id: 'owned', url: process.argv[2] }), {
  format: { input: { widthPx: 160, heightPx: 160 }, align: 'center' },
  pool,
  listener: {
    frame(frame) {
      pool.give(frame.rgbHwc)
      if (frame.seq === 1) console.log('live')
    },
    status() {},
    warning() {},
  },
  nextSeq: () => ++seq,
  log: createLog({ level: 'error', format: 'json' }, 'owner'),
  mediaRoot: '/',
  addresses: new AddressPolicy(),
  connectGate: new ConnectGate(1),
})
source.start()
