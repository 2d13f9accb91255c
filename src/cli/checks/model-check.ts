import { findCameraModel } from '../../ensemble/camera-model.js'
import { classText, classTable } from '../../ensemble/class-table.js'
import { planDetector } from '../../ensemble/detector-plan.js'
import { toErrorRecord } from '../../errors.js'
import type { Finding } from '../findings.js'

/** Whether the cameras can use the model, from its files alone. */
export function checkModel(repository: string, name: string): Finding[] {
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
    return [{ subject, state: 'ok', detail }, ...remarks]
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return [{ subject, state: 'failed', detail: message, fix: hint }]
  }
}
