import type { JSX } from 'preact'
import type { Model } from '../api/types.js'
import { ratesOf, type Rates, type Sample } from '../state/model-rates.js'
import { modelsHref } from '../state/place.js'
import { count, milliseconds, perSecond } from './format.js'
import { modelState } from './models-state.js'

type TableProps = Readonly<{
  models: readonly Model[]
  samples: readonly Sample[]
  selected: string | undefined
  ensemble: string
}>

/** A row for each model, with what one looks at first. */
export function ModelTable({ models, samples, selected, ensemble }: TableProps): JSX.Element {
  return (
    <div class="panel models-table">
      <table>
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">State</th>
            <th scope="col" class="number wide">
              Versions
            </th>
            <th scope="col" class="number" title="Answered requests of API clients">
              Requests/s
            </th>
            <th scope="col" class="number frames" title="Frames of cameras">
              Frames/s
            </th>
            <th scope="col" class="number p99" title="99 of 100 requests or frames took no longer">
              p99
            </th>
            <th scope="col" class="number wide" title="Requests and frames that wait for an instance now">
              Waiting
            </th>
            <th scope="col" class="number wide" title="Failed requests since the model was loaded">
              Failed
            </th>
          </tr>
        </thead>
        <tbody>
          {models.map((model) => (
            <Row
              key={model.name}
              model={model}
              samples={samples}
              isSelected={model.name === selected}
              isOfCameras={model.name === ensemble}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

type RowProps = Readonly<{
  model: Model
  samples: readonly Sample[]
  isSelected: boolean
  isOfCameras: boolean
}>

function Row({ model, samples, isSelected, isOfCameras }: RowProps): JSX.Element {
  const state = modelState(model)
  const { requests, frames, p99, waiting, failed } = figuresOf(model, samples)
  const kind = model.steps.length > 0 ? 'ensemble' : model.platform.replace('onnxruntime_', '')
  return (
    <tr data-model={model.name} class={isSelected ? 'selected' : ''}>
      <th scope="row">
        <a href={modelsHref(model.name)} aria-current={isSelected ? 'true' : undefined} title={model.name}>
          {model.name}
        </a>
        <span class="muted">
          {[kind, ...(isOfCameras || model.forCameras.length > 0 ? ['cameras'] : [])]
            .filter((text) => text !== '')
            .join(' · ')}
        </span>
        {state.tone === 'bad' && <span class="muted row-reason">{state.reason}</span>}
      </th>
      <td>
        <span class={`badge ${state.tone}`} title={state.reason}>
          <span class="dot" aria-hidden="true" />
          {state.text}
        </span>
      </td>
      <td class="number wide">{versionsText(model)}</td>
      <td class="number">{requests === 0 ? '–' : perSecond(requests)}</td>
      <td class="number frames">{frames === 0 ? '–' : perSecond(frames)}</td>
      <td class="number p99">{p99 === undefined ? '–' : milliseconds(p99)}</td>
      <td class="number wide">{count(waiting)}</td>
      <td class={`number wide ${failed > 0 ? 'has-failed' : ''}`}>{count(failed)}</td>
    </tr>
  )
}

function versionsText({ versions }: Model): string {
  if (versions.length > 3) return `${versions.length} versions`
  return versions.map(({ version }) => version).join(', ') || '–'
}

type Figures = Readonly<{
  requests: number
  frames: number
  p99: number | undefined
  waiting: number
  failed: number
}>

/** Of all versions together; the p99 is that of the slowest. */
function figuresOf(model: Model, samples: readonly Sample[]): Figures {
  const versions = new Set([...model.versions, ...model.forCameras].map(({ version }) => version))
  const rates: readonly Rates[] = [...versions].map((version) => ratesOf(samples, model.name, version))
  const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)
  const works = [...model.versions.flatMap(({ work }) => work ?? []), ...model.forCameras]
  const p99s = works.flatMap(({ latencyMs }) => latencyMs?.p99 ?? [])
  return {
    requests: sum(rates.map(({ requestsPerSecond }) => requestsPerSecond)),
    frames: sum(rates.map(({ framesPerSecond }) => framesPerSecond)),
    p99: p99s.length === 0 ? undefined : Math.max(...p99s),
    waiting: sum(works.map(({ waiting }) => waiting)),
    failed: sum([
      ...model.versions.map(({ work }) => work?.durations.fail.count ?? 0),
      ...model.forCameras.map(({ failures }) => failures),
    ]),
  }
}
