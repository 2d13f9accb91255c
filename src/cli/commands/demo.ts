import { Command, InvalidArgumentError } from 'commander'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { loadPipeline } from '../../config/load.js'
import { addSettingFlags, flagSettings, type GlobalOptions, type PipelineOptions } from '../options.js'
import type { CommandContext } from '../command-context.js'
import { runUntilStopped } from '../run-until-stopped.js'
import { installation } from '../../lifecycle/installation.js'

type DemoOptions = PipelineOptions & GlobalOptions & Readonly<{ cameras: number }>

const clips = join(installation, 'pipelines/demo/clips')

export function demoCommand(context: CommandContext): Command {
  const command = new Command('demo')
    .description('the whole service on bundled footage, served as looping RTSP cameras on this machine')
    .option('--cameras <n>', 'how many cameras', cameraCount, 4)
  return addSettingFlags(command).action(async (_, self: Command) => {
    const options = self.optsWithGlobals<DemoOptions>()
    let stopCameras = () => Promise.resolve()
    const prepare = async (signal: AbortSignal) => {
      const { startDemoCameras } = await import('../demo-cameras.js')
      const { server, cameras } = await startDemoCameras(clips, options.cameras, signal)
      stopCameras = () => server.stop()
      return loadPipeline(join(installation, 'pipelines/demo.yaml'), {
        flags: [
          { flag: '--cameras', path: 'cameras', text: JSON.stringify(cameras) },
          ...flagSettings(options),
        ],
        env: { GANTRY_DEMO_STORE: storeOf(context.terminal.env), ...context.terminal.env },
        toServe: true,
      })
    }
    try {
      context.exit(await runUntilStopped(prepare, options, context))
    } finally {
      await stopCameras()
    }
  })
}

/** Beside the sources in a clone; what was installed for all users, or is removed with the next version, is no place for data. */
function storeOf(env: NodeJS.ProcessEnv): string {
  if (existsSync(join(installation, 'src'))) return join(installation, 'data/demo')
  const data = env.XDG_DATA_HOME || join(env.HOME || homedir(), '.local/share')
  return join(data, 'gantry', 'demo')
}

function cameraCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 1 || count > 64)
    throw new InvalidArgumentError('It is a number from 1 to 64.')
  return count
}
