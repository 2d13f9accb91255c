import { EnsembleModel } from '../../ensemble/ensemble-model.js'
import type { LoadedModel } from '../../runtime/loaded-model.js'
import { ServedModel } from '../repository/served-model.js'
import { CachedModel } from '../response-cache/cached-model.js'
import { ScheduledModel } from '../../runtime/scheduled-model.js'
import type { StatisticsRecorder } from '../../runtime/statistics-recorder.js'

/** Where a model counts its requests, whatever stands in front of it. */
export function recorderOf(model: LoadedModel): StatisticsRecorder | undefined {
  if (model instanceof ServedModel || model instanceof CachedModel) return recorderOf(model.inner)
  return model instanceof ScheduledModel || model instanceof EnsembleModel ? model.recorder : undefined
}
