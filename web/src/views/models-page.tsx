import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { ModelList } from '../api/types.js'
import { useDashboard } from '../state/context.js'
import type { ModelsState } from '../state/models.js'
import { useStore } from '../state/store.js'
import { Icon } from './icon.js'
import { ModelDetail } from './models-detail.js'
import { ModelTable } from './models-table.js'
import { modelState } from './models-state.js'

/** Models of the service: what they are, how they do, and what can be done about it. */
export function ModelsPage({ selected }: Readonly<{ selected: string | undefined }>): JSX.Element {
  const { models } = useDashboard()
  const state = useStore(models.state)
  const [filter, setFilter] = useState('')
  useEffect(() => models.watch(), [models])
  const shown = shownList(state)
  const wanted = filter.trim().toLowerCase()
  const rows = useMemo(
    () => shown?.items.filter(({ name }) => name.toLowerCase().includes(wanted)) ?? [],
    [shown, wanted],
  )
  const model = shown?.items.find(({ name }) => name === selected)
  return (
    <section id="models" class="models" aria-labelledby="models-title" data-detail={selected !== undefined}>
      <div class="models-main">
        <header class="models-head">
          <h2 id="models-title">Models</h2>
          <p class="muted">{shown === undefined ? '' : summary(shown)}</p>
          <label class="filter">
            <Icon name="search" />
            <input
              id="models-filter"
              type="search"
              value={filter}
              placeholder="Filter by name"
              aria-label="Filter the models by name"
              onInput={(event) => setFilter(event.currentTarget.value)}
            />
            <kbd aria-hidden="true">/</kbd>
          </label>
        </header>
        {state.list !== undefined && <ServerNote state={state} />}
        {shown === undefined ? (
          <p class="panel models-empty" role="status">
            {state.failure === '' ? 'Loading the models' : `No models to show. ${state.failure}`}
          </p>
        ) : rows.length === 0 ? (
          <p class="panel models-empty">{emptyText(shown, wanted)}</p>
        ) : (
          <ModelTable models={rows} samples={state.samples} selected={selected} ensemble={shown.ensemble} />
        )}
      </div>
      {selected !== undefined && shown !== undefined && (
        <ModelDetail
          key={selected}
          name={selected}
          model={model}
          list={shown}
          samples={state.samples}
          isOld={isOld(state)}
        />
      )}
    </section>
  )
}

/** While the model server is away for a moment, what it last told; it says itself when that is old. */
function shownList({ list, known }: ModelsState): ModelList | undefined {
  if (list === undefined || list.server.isTold || known === undefined) return list
  return list.server.state === 'idle' || list.server.state === 'off'
    ? list
    : { ...known, server: list.server }
}

function isOld({ list, failure }: ModelsState): boolean {
  return failure !== '' || list?.server.isTold !== true
}

function summary({ items }: ModelList): string {
  const count = (tone: string): number => items.filter((model) => modelState(model).tone === tone).length
  const [bad, partly] = [count('bad'), count('warn')]
  return [
    `${items.length} ${items.length === 1 ? 'model' : 'models'}`,
    `${count('ok')} ready`,
    ...(partly > 0 ? [`${partly} with warnings`] : []),
    ...(bad > 0 ? [`${bad} unavailable`] : []),
  ].join(' · ')
}

function emptyText({ items, server }: ModelList, wanted: string): string {
  if (items.length > 0) return `No model has “${wanted}” in its name.`
  if (server.state === 'off') return 'Nothing runs models here: neither cameras nor a model server.'
  return server.isTold
    ? 'The repository is empty. A model is a folder NAME/1/model.onnx below models.repository.'
    : 'No models are known yet.'
}

/** How the process stands that serves API clients, where that is worth a word. */
function ServerNote({ state }: Readonly<{ state: ModelsState }>): JSX.Element | null {
  const dashboard = useDashboard()
  const [busy, setBusy] = useState(false)
  const [failure, setFailure] = useState('')
  const { server } = state.list!
  const wake = async (): Promise<void> => {
    setBusy(true)
    setFailure('')
    await dashboard
      .wakeModels()
      .catch((error: unknown) => setFailure(error instanceof Error ? error.message : 'That did not work.'))
    setBusy(false)
  }
  const reason = server.reason === '' ? '' : ` ${server.reason}`
  if (state.failure !== '')
    return (
      <Note tone="bad">The service does not tell of its models. What you see is old. {state.failure}</Note>
    )
  if (server.state === 'idle')
    return (
      <Note tone="idle">
        The model server sleeps, and takes no memory: nobody has asked for a model yet. The first request
        starts it.{' '}
        <button type="button" class="button" disabled={busy} onClick={() => void wake()}>
          {busy ? 'Starting' : 'Start it and list the models'}
        </button>{' '}
        {failure}
      </Note>
    )
  if (server.state === 'off')
    return (
      <Note tone="idle">
        This service has no model server (<code>modelServer.enabled</code> is false): only cameras use models.
      </Note>
    )
  if (server.state === 'starting' || server.state === 'restarting')
    return (
      <Note tone="warn">
        The model server is {server.state}.{reason} What you see of it is old.
      </Note>
    )
  if (server.state === 'failed' || server.state === 'stopped')
    return (
      <Note tone="bad">
        The model server {server.state === 'failed' ? 'cannot run' : 'has stopped'}.{reason}
      </Note>
    )
  if (!server.isTold)
    return <Note tone="warn">The model server is busy and does not tell in time. What you see is old.</Note>
  return reason === '' ? null : <Note tone="warn">{reason}</Note>
}

function Note({
  tone,
  children,
}: Readonly<{ tone: string; children: JSX.Element['props']['children'] }>): JSX.Element {
  return (
    <div class={`models-note ${tone}`} role="status">
      <span class="dot" aria-hidden="true" />
      <p>{children}</p>
    </div>
  )
}
