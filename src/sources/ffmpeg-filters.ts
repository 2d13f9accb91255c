import { execFile } from 'node:child_process'
import { childEnvironment } from '../lifecycle/child-environment.js'
import { withDeathSignal } from '../lifecycle/death-signal.js'
import { listingArguments } from './ffmpeg-command.js'

const askAtMostMs = 10_000
const mostBytes = 1024 ** 2

/** What filters the ffmpeg of this machine has. It is asked once. */
export class FfmpegFilters {
  #names: Promise<ReadonlySet<string>> | undefined

  /** `false` also where ffmpeg cannot be asked. */
  async has(name: string): Promise<boolean> {
    this.#names ??= list()
    return (await this.#names).has(name)
  }
}

function list(): Promise<ReadonlySet<string>> {
  const [command, args] = withDeathSignal('ffmpeg', listingArguments('filters'))
  const options = { timeout: askAtMostMs, maxBuffer: mostBytes, env: childEnvironment() }
  return new Promise((resolve) => {
    execFile(command, args, options, (_, stdout) => resolve(new Set(filtersIn(stdout))))
  })
}

/** Names in `ffmpeg -filters`, whose lines are ` T.C scale_cuda V->V what it does`. */
export function filtersIn(listing: string): readonly string[] {
  return [...listing.matchAll(/^ [.A-Z|]{2,4} +(\w+) +\S+->\S+/gm)].map(([, name = '']) => name)
}
