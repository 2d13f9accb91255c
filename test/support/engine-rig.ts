import { cameraNetworksSchema } from '../../src/config/camera-networks.js'
import { inferenceSchema } from '../../src/config/inference.js'
import type { EngineResult } from '../../src/cameras/engine-report.js'
import { Engine } from '../../src/processes/engine/engine.js'
import type { FromEngine } from '../../src/processes/engine/protocol.js'
import { recordingLog } from './silent-log.js'

/** An engine whose messages and results are kept; `out.unsentBytes` is what control has not read. */
export function engineRig(repositories: readonly string[] = [], ensemble = 'none') {
  const { log, lines } = recordingLog()
  const messages: FromEngine[] = []
  const results: EngineResult<string>[] = []
  const out = {
    send: (message: FromEngine) => void messages.push(message),
    sendResult: (result: EngineResult<string>) => void results.push(result),
    unsentBytes: 0,
  }
  const setup = {
    index: 0,
    repositories,
    ensemble,
    inference: inferenceSchema.parse({}),
    allowJsBackends: false,
    maxConcurrentConnects: 1,
    mediaRoot: '/',
    cameraNetworks: cameraNetworksSchema.parse({}),
    log: { level: 'silent' },
  } as const
  return { engine: new Engine(setup as never, out, log), lines, messages, results, out }
}
