import { findCameraModel } from '../../ensemble/camera-model.js'
import { planCameraModel } from '../../ensemble/check-camera-model.js'
import type { CameraSteps } from '../../ensemble/camera-steps.js'
import { classText, classTable } from '../../detector/class-table.js'
import { noCameraShapes, sizeText } from '../../detector/input-size.js'
import { toErrorRecord } from '../../errors.js'
import type { OnnxModel } from '../../repository/onnx-model.js'
import type { Repositories } from '../../repository/repository-files.js'
import type { Finding } from '../findings.js'
import type { ProviderState } from '../../backends/onnxruntime/provider-look.js'
import { runningProvider, runsOnGpu } from './provider-check.js'

/**
 * Whether the cameras can use the model, from its files alone.
 *
 * @param states - of the providers, which decide whether a model for GPUs takes the place of the ensemble's own.
 * @param allowJsBackends - whether steps may run code of the repository.
 * @param shapes - of the cameras, as far as they are known, for a model that leaves its size open.
 */
export function checkModel(
  repositories: Repositories,
  name: string,
  states: readonly ProviderState[],
  allowJsBackends: boolean,
  shapes = noCameraShapes,
): Finding[] {
  const subject = `model ${name}`
  try {
    const model = findCameraModel(repositories, name)
    const { version, warnings, ensemble } = model
    const beside = ensemble === undefined ? '' : stepsText(ensemble.steps)
    const code = ensemble?.steps.others.find(({ backend }) => backend === 'js')
    if (code !== undefined && !allowJsBackends)
      return [
        {
          subject,
          state: 'failed',
          detail: `${code.title} runs code of the repository, which is not allowed`,
          fix: 'Set models.allowJsBackends to true if you trust everyone who can write to the model repository.',
        },
      ]
    const planned = planCameraModel(model, shapes)
    if (planned === undefined)
      return [
        { subject, state: 'ok', detail: `version ${version}, ${beside}` },
        ...[...new Set(warnings)].map((note): Finding => ({ subject, state: 'warning', detail: note })),
      ]
    // All are looked at, so that none fails on another machine only.
    const { own, onGpu, inFloat16 } = planned
    const { head, input, sizeFrom, exportedSize, labels } = (runsOnGpu(states) ? (onGpu ?? own) : own).plan
    const size = `${sizeText(input.size)} by ${sizeFrom}${exportedSize === undefined ? '' : ` (${sizeText(exportedSize)} if it does not run so, which is seen at its load)`}`
    const classes = classTable(head, labels)
    const shown = classes.slice(0, 9).map(classText).join(', ')
    const more = classes.length > 9 ? `, ... ${classes.length - 9} more` : ''
    const by = head.columns === undefined ? 'by number' : 'by column'
    const detail = `version ${version}, ${head.kind} head, ${size}, ${labels.length} labels; classes ${by}: ${shown || 'not named'}${more}; head known by ${head.reason ?? 'its output'}`
    const taken = [
      ...(onGpu === undefined ? [] : [choiceText(own.detector, onGpu.detector, states)]),
      ...(inFloat16 === undefined ? [] : [float16Text(inFloat16.detector)]),
    ]
    const remarks = new Set([...warnings, ...own.plan.notes, ...(onGpu?.plan.notes ?? [])])
    return [
      { subject, state: 'ok', detail: [detail, ...taken, ...(beside === '' ? [] : [beside])].join('; ') },
      ...[...remarks].map((note): Finding => ({ subject, state: 'warning', detail: note })),
    ]
  } catch (error) {
    const { message, hint } = toErrorRecord(error)
    return [{ subject, state: 'failed', detail: message, fix: hint }]
  }
}

/** What runs for each frame beside letterbox, detector and head. */
function stepsText({ others }: CameraSteps): string {
  if (others.length === 0) return ''
  return `steps that run by themselves: ${others.map(({ step, backend }) => `${step.model_name} (${backend})`).join(', ')}`
}

/** When a model in float16 is taken, which only its load finds out. */
function float16Text({ name }: Pick<OnnxModel, 'name'>): string {
  return `${name} (gantry.float16_model) on a GPU where its load measures it to be faster; /readyz tells both times`
}

/** Which of two detectors is taken, and why. */
export function choiceText(
  own: Pick<OnnxModel, 'name'>,
  onGpu: Pick<OnnxModel, 'name'>,
  states: readonly ProviderState[],
): string {
  const provider = runningProvider(states) ?? 'no provider'
  return runsOnGpu(states)
    ? `runs ${onGpu.name} (gantry.gpu_model), as ${provider} runs the models here, and ${own.name} on a CPU`
    : `runs ${own.name}, as ${provider} runs the models here, and ${onGpu.name} (gantry.gpu_model) on a GPU`
}
