import { rm } from 'node:fs/promises'
import type { ServerProcess } from './child.js'

/** A server of a test in a folder of its own, which can be frozen, killed as by a crash, and started again. */
export abstract class LocalServer {
  protected process: ServerProcess | undefined

  protected constructor(
    readonly folder: string,
    readonly port: number,
  ) {}

  /** Starts, or starts again on the same port, and waits until it answers. */
  abstract start(): Promise<void>

  /** Connections stay open, nothing answers. */
  freeze(): void {
    this.process?.freeze()
  }

  resume(): void {
    this.process?.resume()
  }

  /** As a crash: nothing is written, no connection is closed in order. */
  async kill(): Promise<void> {
    await this.process?.end('SIGKILL')
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.kill()
    await rm(this.folder, { recursive: true, force: true })
  }
}
