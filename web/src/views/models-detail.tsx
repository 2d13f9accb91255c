import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { savedToken } from '../api/token.js'
import type { Model, ModelList, ModelVersion } from '../api/types.js'
import { inferCommand } from '../commands/infer-command.js'
import { useDashboard } from '../state/context.js'
import { ratesOf, type Sample } from '../state/model-rates.js'
import { modelsHref } from '../state/place.js'
import { useStore } from '../state/store.js'
import { Command } from './command.js'
import { serviceBase } from './first-steps.js'
import { count, milliseconds, perSecond } from './format.js'
import { Figure } from './models-figure.js'
import { Icon } from './icon.js'
import { ModelControls } from './models-controls.js'
import { VersionFigures } from './models-figures.js'
import { modelState, versionState } from './models-state.js'

type DetailProps = Readonly<{
  name: string
  /** Absent: there is no such model. */
  model: Model | undefined
  list: ModelList
  samples: readonly Sample[]
  isOld: boolean
}>

/** Everything of one model. */
export function ModelDetail({ name, model, list, samples, isOld }: DetailProps): JSX.Element {
  return (
    <section class="panel model-detail" aria-labelledby="model-title" data-model-detail={name}>
      <header class="model-head">
        <a class="icon-button back" href={modelsHref()} aria-label="Back to all models" title="All models">
          <Icon name="left" />
        </a>
        <h2 id="model-title" title={name}>
          {name}
        </h2>
        <a class="icon-button close" href={modelsHref()} aria-label="Close the details" title="Close">
          <Icon name="close" />
        </a>
      </header>
      {model === undefined ? (
        <p class="muted model-gone">There is no model of that name{isOld ? ' that is known now' : ''}.</p>
      ) : (
        <Body model={model} list={list} samples={samples} isOld={isOld} />
      )}
    </section>
  )
}

type BodyProps = Readonly<{ model: Model; list: ModelList; samples: readonly Sample[]; isOld: boolean }>

function Body({ model, list, samples, isOld }: BodyProps): JSX.Element {
  const state = modelState(model)
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const newest = model.versions.findLast((version) => version.work !== null) ?? model.versions.at(-1)
  const version = model.versions.find((each) => each.version === chosen) ?? newest
  return (
    <div class={`model-body ${isOld ? 'old' : ''}`}>
      <div class="model-facts">
        <span class={`badge ${state.tone}`}>
          <span class="dot" aria-hidden="true" />
          {state.text}
        </span>
        <span class="muted">{factsText(model)}</span>
      </div>
      {state.reason !== '' && <p class={`model-reason ${state.tone}`}>{state.reason}</p>}
      <ModelControls model={model} control={list.server.control} isAway={!list.server.isTold} />
      {model.versions.length > 1 && (
        <Versions
          model={model}
          samples={samples}
          chosen={version?.version}
          onChoose={(next) => setChosen(next)}
        />
      )}
      {version !== undefined && <VersionFigures model={model} version={version} samples={samples} />}
      <ForCameras model={model} list={list} samples={samples} />
      {model.steps.length > 0 && (
        <section>
          <h3>Runs</h3>
          <ul class="model-steps">
            {model.steps.map((step, index) => (
              <li key={`${index} ${step}`}>
                {list.items.some(({ name }) => name === step) ? <a href={modelsHref(step)}>{step}</a> : step}
              </li>
            ))}
          </ul>
        </section>
      )}
      <Tensors title="Inputs" tensors={model.inputs} />
      <Tensors title="Outputs" tensors={model.outputs} />
      {model.inputs.length > 0 && <Ask model={model} />}
    </div>
  )
}

function factsText({ platform, maxBatchSize, isCached }: Model): string {
  return [
    platform,
    ...(maxBatchSize === null ? [] : [maxBatchSize === 0 ? 'no batches' : `batches up to ${maxBatchSize}`]),
    ...(isCached ? ['response cache'] : []),
  ]
    .filter((text) => text !== '')
    .join(' · ')
}

type VersionsProps = Readonly<{
  model: Model
  samples: readonly Sample[]
  chosen: string | undefined
  onChoose: (version: string) => void
}>

function Versions({ model, samples, chosen, onChoose }: VersionsProps): JSX.Element {
  return (
    <section>
      <h3>Versions</h3>
      <div class="versions" tabIndex={0} role="group" aria-label="Versions">
        <table>
          <thead>
            <tr>
              <th scope="col">Version</th>
              <th scope="col">State</th>
              <th scope="col" class="number">
                Requests/s
              </th>
              <th scope="col" class="number">
                p99
              </th>
            </tr>
          </thead>
          <tbody>
            {model.versions.map((version) => (
              <VersionRow
                key={version.version}
                name={model.name}
                version={version}
                samples={samples}
                isChosen={version.version === chosen}
                onChoose={onChoose}
              />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

type VersionRowProps = Readonly<{
  name: string
  version: ModelVersion
  samples: readonly Sample[]
  isChosen: boolean
  onChoose: (version: string) => void
}>

function VersionRow({ name, version, samples, isChosen, onChoose }: VersionRowProps): JSX.Element {
  const state = versionState(version)
  const { requestsPerSecond } = ratesOf(samples, name, version.version)
  const p99 = version.work?.latencyMs?.p99
  return (
    <tr class={isChosen ? 'selected' : ''} data-version={version.version}>
      <th scope="row">
        <button
          type="button"
          class="link-button"
          aria-pressed={isChosen}
          onClick={() => onChoose(version.version)}
        >
          {version.version}
        </button>
      </th>
      <td>
        <span class={`badge ${state.tone}`}>
          <span class="dot" aria-hidden="true" />
          {state.text}
        </span>
        {state.reason !== '' && <p class="version-reason">{state.reason}</p>}
      </td>
      <td class="number">{requestsPerSecond === 0 ? '–' : perSecond(requestsPerSecond)}</td>
      <td class="number">{p99 === undefined ? '–' : milliseconds(p99)}</td>
    </tr>
  )
}

/** Which cameras use it, and what that costs. */
function ForCameras({
  model,
  list,
  samples,
}: Readonly<{ model: Model; list: ModelList; samples: readonly Sample[] }>): JSX.Element | null {
  const { poller } = useDashboard()
  const cameras = (useStore(poller.cameras) ?? []).filter(({ config }) => config.enabled)
  const isEnsemble = model.name === list.ensemble
  if (model.forCameras.length === 0 && !(isEnsemble && cameras.length > 0)) return null
  return (
    <section data-for-cameras>
      <h3>For cameras</h3>
      <p>
        {isEnsemble ? 'What the cameras run' : `A part of what the cameras run (${list.ensemble})`}:{' '}
        {cameras.length === 0 ? 'none is switched on.' : namesText(cameras.map(({ id }) => id))}
      </p>
      {model.forCameras.map((work) => (
        <dl key={work.version} class="model-figures">
          <Figure
            name="frames/s"
            value={perSecond(ratesOf(samples, model.name, work.version).framesPerSecond)}
          />
          <Figure name="frames" value={count(work.frames)} />
          <Figure name="mean" value={work.frames === 0 ? '–' : milliseconds(work.inferMs / work.frames)} />
          <Figure name="p50" value={work.latencyMs === null ? '–' : milliseconds(work.latencyMs.p50)} />
          <Figure name="p99" value={work.latencyMs === null ? '–' : milliseconds(work.latencyMs.p99)} />
          <Figure name="failed" value={count(work.failures)} />
        </dl>
      ))}
    </section>
  )
}

/** The first few, and how many more. */
function namesText(ids: readonly string[]): string {
  const most = 12
  const more = ids.length - most
  return `${ids.slice(0, most).join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
}

function Tensors({
  title,
  tensors,
}: Readonly<{ title: string; tensors: Model['inputs'] }>): JSX.Element | null {
  if (tensors.length === 0) return null
  return (
    <section>
      <h3>{title}</h3>
      <ul class="tensors">
        {tensors.map(({ name, datatype, shape }) => (
          <li key={name}>
            <strong>{name}</strong>
            <code>
              {datatype} [{shape.map((size) => (size < 0 ? '?' : size)).join(', ')}]
            </code>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** A command that asks it. */
function Ask({ model }: Readonly<{ model: Model }>): JSX.Element {
  const wantsToken = savedToken() !== undefined
  return (
    <section>
      <h3>Ask it</h3>
      <Command
        label={`Command that asks ${model.name}`}
        text={inferCommand(serviceBase(), model, wantsToken)}
      />
      <p class="muted">
        With zeros in the right shape, in bash.
        {wantsToken && (
          <>
            {' '}
            Before that: <code>export GANTRY_TOKEN=…</code>
          </>
        )}
      </p>
    </section>
  )
}
