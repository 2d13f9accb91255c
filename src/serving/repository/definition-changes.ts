import type { ModelDefinition } from '../../repository/model-definition.js'
import type { ModelRecord } from './model-record.js'
import { printOfVersion, samePrint } from '../../repository/repository-files.js'

/** Whether a version that serves would be loaded from the same files with the same configuration. */
export function isUnchanged(record: ModelRecord, next: ModelDefinition, version: number): boolean {
  const { definition } = record
  if (definition === undefined || record.model(version) === undefined) return false
  return (
    JSON.stringify(definition.config) === JSON.stringify(next.config) &&
    hasSameFiles(definition, next, version)
  )
}

/** Then the model stays the model it was, and its statistics go on. */
export function differsInInstancesOnly(a: ModelDefinition, b: ModelDefinition): boolean {
  const rest = (definition: ModelDefinition) => JSON.stringify({ ...definition.config, instance_group: [] })
  return rest(a) === rest(b) && b.versions.every((version) => hasSameFiles(a, b, version))
}

function hasSameFiles(a: ModelDefinition, b: ModelDefinition, version: number): boolean {
  return (
    a.folder.dir === b.folder.dir &&
    samePrint(printOfVersion(a.print, version), printOfVersion(b.print, version))
  )
}
