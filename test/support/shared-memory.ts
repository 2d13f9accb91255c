import { randomUUID } from 'node:crypto'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A shared memory object of a client, gone with the test. */
export class SharedObject {
  readonly name = `gantry-test-${randomUUID()}`
  readonly key = `/${this.name}`
  readonly path = join('/dev/shm', this.name)

  constructor(content: Uint8Array | number) {
    writeFileSync(this.path, typeof content === 'number' ? new Uint8Array(content) : content)
    onTestFinished(() => rmSync(this.path, { force: true }))
  }

  get bytes(): Buffer {
    return readFileSync(this.path)
  }

  resize(bytes: number): void {
    truncateSync(this.path, bytes)
  }
}
