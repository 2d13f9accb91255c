import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ModelConfig } from './model-config.js'

/**
 * Names what a version of a model computes: its configuration and the content of its files. Two services with the same model agree
 * on it, and no answer outlives the model that gave it.
 */
export async function modelGeneration(config: ModelConfig, versionDir: string): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify({ ...config, instance_group: [] }))
  await addFolder(hash, versionDir)
  return hash.digest('base64url')
}

async function addFolder(hash: Hash, dir: string): Promise<void> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => [])
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(dir, entry.name)
    hash.update(JSON.stringify(entry.name))
    if (entry.isDirectory()) await addFolder(hash, path)
    else for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  }
}
