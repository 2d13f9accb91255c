import { stringify } from 'yaml'
import type { PipelineConfig } from './pipeline.js'
import { redactSettings } from './redact.js'

/** The settings in force as a pipeline file, defaults written out and secrets masked. */
export function printConfig(config: PipelineConfig): string {
  return stringify(redactSettings(config), { aliasDuplicateObjects: false })
}

/** The same as JSON, which is YAML as well. */
export function printConfigJson(config: PipelineConfig): string {
  return JSON.stringify(redactSettings(config), null, 2)
}
