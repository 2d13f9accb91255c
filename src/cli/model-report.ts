import { classText } from '../detector/class-table.js'
import { sizeText } from '../detector/input-size.js'
import type { DetectorReport, ModelReport, ModelSummary } from '../tools/model-catalog.js'
import { describeTensor, type ModelTensor } from '../tensors/tensor.js'
import { styled } from './terminal.js'
import { table } from './table.js'

/** `gantry models list` for people. */
export function modelTable(models: readonly ModelSummary[], color: boolean): string {
  const rows = models.map(({ name, backend, versions, fileBytes, ok, error }) => [
    name,
    backend,
    versions.join(' '),
    fileBytes > 0 ? megabytes(fileBytes) : '',
    styled(ok ? 'ok' : 'broken', ok ? 'green' : 'red', color),
    error?.message ?? '',
  ])
  return table(
    ['MODEL', 'BACKEND', 'VERSIONS', 'SIZE', 'STATE', 'REASON'].map((word) => styled(word, 'bold', color)),
    rows,
  )
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}

/**
 * `gantry models inspect` for people: the report without what the configuration file says itself.
 *
 * @param taken - which detector runs on this machine, where there are two.
 */
export function readableReport(report: ModelReport, taken = ''): Readonly<Record<string, unknown>> {
  const { name, backend, versions, dir, configFrom, warnings, file, steps } = report
  const { detector, gpuDetector, detectorError, forClientsAlone } = report
  return {
    name,
    backend,
    versions: versions.join(' '),
    folder: dir,
    'settings from': configFrom,
    ...(warnings.length > 0 && { warnings }),
    ...(steps && {
      steps: steps.map(({ model, version }) => (version === '' ? model : `${model} version ${version}`)),
    }),
    ...(file && {
      file: `${file.path} (${megabytes(file.bytes)}, by ${file.producer || 'an unknown program'})`,
      inputs: file.inputs.map(tensorText),
      outputs: file.outputs.map(tensorText),
    }),
    ...(detector && { cameras: detectorText(detector) }),
    ...(gpuDetector && { 'cameras on a GPU': detectorText(gpuDetector), 'runs here': taken }),
    ...(detectorError && {
      cameras: `${forClientsAlone ? 'it is for API clients' : 'cannot use it'}: ${detectorError.message}`,
      ...(!forClientsAlone && { hint: detectorError.hint }),
    }),
  }
}

function detectorText(detector: DetectorReport): Readonly<Record<string, unknown>> {
  const { size, layout, channels, range, align } = detector.input
  return {
    detector: detector.detector,
    head: `${detector.head}, known by ${detector.headFrom}; reads ${detector.headOutputs.join(', ')}`,
    input: `${sizeText(size)} ${layout}, ${channels}, ${range}, letterbox ${align}; size by ${detector.inputFrom}`,
    labels: detector.labels.join(', '),
    [detector.classesBy === 'column' ? 'columns of scores' : 'class numbers']:
      detector.classes.map(classText),
  }
}

function tensorText(tensor: ModelTensor): string {
  return `${tensor.name} ${describeTensor(tensor)}`
}
