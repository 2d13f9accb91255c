import type { PictureOrigin } from '../tools/transform/frames.js'
import { UsageError } from './failure.js'
import type { Terminal } from './terminal.js'

/**
 * What `--frames` names: paths as they are, `cameras` of the pipeline file and URLs as cameras.
 *
 * @throws UsageError for `cameras` without a pipeline file; ConfigError
 */
export async function pictureOrigins(
  { frames, config }: Readonly<{ frames: readonly string[]; config?: string }>,
  env: Terminal['env'],
): Promise<readonly PictureOrigin[]> {
  const isCamera = (source: string) => source === 'cameras' || /^(rtsps?|https?):\/\//.test(source)
  if (!frames.some(isCamera)) return frames
  const [{ loadPipeline }, { cameraSchema }, { AddressPolicy }, { ConnectGate }, { createLog }] =
    await Promise.all([
      import('../config/load.js'),
      import('../config/camera.js'),
      import('../lifecycle/address-policy.js'),
      import('../sources/connect-gate.js'),
      import('../lifecycle/log.js'),
    ])
  if (config === undefined && frames.includes('cameras'))
    throw new UsageError('--frames cameras needs a pipeline file', 'Name it with -c FILE.')
  const pipeline = config === undefined ? undefined : loadPipeline(config, { env }).config
  const setting = {
    mediaRoot: pipeline?.mediaRoot ?? '.',
    addresses: new AddressPolicy(pipeline?.cameraNetworks),
    connectGate: new ConnectGate(4),
    log: createLog({ level: 'error', format: 'json' }, 'frames'),
  }
  return frames.flatMap((source, at): readonly PictureOrigin[] => {
    if (!isCamera(source)) return [source]
    const cameras =
      source === 'cameras'
        ? (pipeline?.cameras ?? []).filter(({ enabled }) => enabled)
        : [cameraSchema.parse({ id: `frames-${at + 1}`, url: source })]
    return cameras.map((camera) => ({ camera, setting }))
  })
}
