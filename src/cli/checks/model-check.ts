import type { InferenceConfig } from '../../config/inference.js'
import { findCameraModel } from '../../ensemble/camera-model.js'
import { classText, classTable } from '../../ensemble/class-table.js'
import { planDetector } from '../../ensemble/detector-plan.js'
import { toErrorRecord } from '../../errors.js'
import { missingProviderReason } from '../../inference/providers.js'
import type { Finding } from '../findings.js'

/** Whether the cameras can use the model, from its files alone, and which providers could run it. */
export function checkModel(repository: string, name: string, inference: InferenceConfig): Finding[] {
  const subject = `model ${name}`
  try {
    const { detector, version, warnings } = findCameraModel(repository, name)
    const { head, input, labels, notes } = planDetector(detector)
    const size = `${input.size.widthPx}x${input.size.heightPx}`
    const classes = classTable(head, labels)
    const shown = classes.slice(0, 9).map(classText).join(', ')
    const more = classes.length > 9 ? `, ... ${classes.length - 9} more` : ''
    const by = head.columns === undefined ? 'by number' : 'by column'
    const detail = `version ${version}, ${head.kind} head, ${size}, ${labels.length} labels; classes ${by}: ${shown || 'not named'}${more}; head known by ${head.reason ?? 'its output'}`
    const remarks = [...warnings, ...notes].map((note): Finding => ({
      subject,
      state: 'warning',
      detail: note,
    }))
    return [{ subject, state: 'ok', detail }, ...remarks, ...checkProviders(inference)]
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return [{ subject, state: 'failed', detail: message, fix: hint }, ...checkProviders(inference)]
  }
}

function checkProviders({ providers }: InferenceConfig): Finding[] {
  const missing = providers.map((provider) => ({ provider, reason: missingProviderReason(provider) }))
  const usable = missing.find(({ reason }) => reason === undefined)
  const notes = missing
    .filter(({ reason }) => reason !== undefined)
    .map(({ provider, reason }) => `${provider}: ${reason}`)
  if (usable === undefined)
    return [
      {
        subject: 'providers',
        state: 'failed',
        detail: notes.join('; '),
        fix: 'add cpu to inference.providers',
      },
    ]
  return [
    { subject: 'providers', state: 'ok', detail: [`${usable.provider} is tried first`, ...notes].join('; ') },
  ]
}
