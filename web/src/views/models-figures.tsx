import type { JSX } from 'preact'
import type { Model, ModelVersion, ModelWork } from '../api/types.js'
import { parts, ratesOf, type Rates, type Sample } from '../state/model-rates.js'
import { count, milliseconds, perSecond, share } from './format.js'
import { Figure } from './models-figure.js'

type FiguresProps = Readonly<{ model: Model; version: ModelVersion; samples: readonly Sample[] }>

const partNames: Readonly<Record<(typeof parts)[number], readonly [name: string, tone: string]>> = {
  queue: ['waiting', 'warn'],
  compute_input: ['input', 'idle'],
  compute_infer: ['model', 'info'],
  compute_output: ['output', 'ok'],
}

/** What API clients asked of one version, and where it runs. */
export function VersionFigures({ model, version, samples }: FiguresProps): JSX.Element | null {
  const { work } = version
  const rates = ratesOf(samples, model.name, version.version)
  return (
    <>
      <Places version={version} />
      {work !== null && (
        <section data-figures={version.version}>
          <h3>
            For API clients
            {model.versions.length > 1 && <span class="muted"> version {version.version}</span>}
          </h3>
          <dl class="model-figures">
            <Figure name="requests/s" value={perSecond(rates.requestsPerSecond)} />
            <Figure name="failed/s" value={perSecond(rates.failuresPerSecond)} />
            <Figure name="waiting" value={count(work.waiting)} />
            <Figure name="p50" value={work.latencyMs === null ? '–' : milliseconds(work.latencyMs.p50)} />
            <Figure name="p99" value={work.latencyMs === null ? '–' : milliseconds(work.latencyMs.p99)} />
            <Figure name="requests" value={count(work.durations.success.count)} />
            <Figure name="failed" value={count(work.durations.fail.count)} />
            {model.isCached && <Figure name="cache hits" value={hitsText(work)} />}
          </dl>
          <Failures work={work} />
          <Latency rates={rates} />
          <Batches work={work} />
        </section>
      )}
    </>
  )
}

function Places({ version }: Readonly<{ version: ModelVersion }>): JSX.Element | null {
  const { instances, places, failedPlaces, loadMs } = version
  if (instances === null && places.length === 0 && failedPlaces.length === 0) return null
  return (
    <section>
      <h3>Runs on</h3>
      <p>
        {instances !== null && (
          <>
            {count(instances.count)} {instances.count === 1 ? 'instance' : 'instances'}
            {instances.ready < instances.count && `, ${count(instances.ready)} of them up`}
            {places.length > 0 && ' on '}
          </>
        )}
        {places.map(placeText).join(', ')}
        {loadMs !== null && <span class="muted"> · loaded in {milliseconds(loadMs)}</span>}
      </p>
      {failedPlaces.map((text) => (
        <p key={text} class="model-reason warn">
          Not on {text}
        </p>
      ))}
    </section>
  )
}

/** `cuda:0` is GPU 0 by CUDA. */
function placeText(place: string): string {
  const [provider = '', device] = place.split(':')
  return device === undefined ? provider.toUpperCase() : `GPU ${device} (${provider})`
}

function hitsText({ durations: { cache_hit: hit, cache_miss: miss } }: ModelWork): string {
  const asked = hit.count + miss.count
  return asked === 0 ? '–' : `${count(hit.count)} (${share(hit.count / asked)})`
}

const failureNames: Readonly<Record<string, string>> = {
  REJECTED: 'refused: the queue was full, or they waited too long',
  CANCELED: 'given up by the client',
  BACKEND: 'failed in the model',
  OTHER: 'wrong requests and others',
}

function Failures({ work }: Readonly<{ work: ModelWork }>): JSX.Element | null {
  const failures = Object.entries(work.failures)
  if (failures.length === 0) return null
  return (
    <ul class="model-failures">
      {failures.map(([reason, times]) => (
        <li key={reason}>
          <strong>{count(times)}</strong> {failureNames[reason] ?? reason}
        </li>
      ))}
    </ul>
  )
}

/** Where a request spends its time, on average. */
function Latency({ rates: { meanMs } }: Readonly<{ rates: Rates }>): JSX.Element | null {
  if (meanMs === null) return null
  const total = parts.reduce((sum, part) => sum + meanMs[part], 0)
  let x = 0
  return (
    <div class="model-latency">
      <h4>Where a request spends its time, mean {milliseconds(total)}</h4>
      <svg class="fates-bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        {parts.map((part) => {
          const width = total === 0 ? 0 : (meanMs[part] / total) * 100
          x += width
          return (
            <rect key={part} class={`fill-${partNames[part][1]}`} x={x - width} width={width} height="8" />
          )
        })}
      </svg>
      <ul>
        {parts.map((part) => (
          <li key={part}>
            <span class={`dot ${partNames[part][1]}`} aria-hidden="true" />
            {partNames[part][0]} {milliseconds(meanMs[part])}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** How large the batches were that ran. */
function Batches({ work: { batches } }: Readonly<{ work: ModelWork }>): JSX.Element | null {
  if (batches.length === 0) return null
  const most = Math.max(...batches.map(({ runs }) => runs), 1)
  const all = batches.reduce((sum, { runs }) => sum + runs, 0)
  return (
    <div class="model-batches">
      <h4>Batches that ran</h4>
      <table>
        <thead>
          <tr>
            <th scope="col">Size</th>
            <th scope="col">Runs</th>
            <th scope="col" class="number">
              Mean
            </th>
          </tr>
        </thead>
        <tbody>
          {batches.map(({ size, runs, inferMs }) => (
            <tr key={size}>
              <th scope="row">{count(size)}</th>
              <td>
                <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="fill-info" width={(runs / most) * 100} height="8" />
                </svg>
                <span>
                  {count(runs)} <span class="muted">{share(runs / all)}</span>
                </span>
              </td>
              <td class="number">{runs === 0 ? '–' : milliseconds(inferMs / runs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
