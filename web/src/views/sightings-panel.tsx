import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'
import { matches, type Entry, type Gap, type Sighting } from '../state/sightings.js'
import { useStore } from '../state/store.js'
import { serviceClock } from '../state/service-clock.js'
import { count, duration, moment, timeZone } from './format.js'
import { Icon } from './icon.js'
import { LabelChips } from './label-chips.js'
import { useRoving, type Roving } from './roving.js'

const shownEntries = 60

/** The newest detections, with a filter and a way to hold them still for reading. */
export function SightingsPanel({ onOpen }: Readonly<{ onOpen: (id: string) => void }>): JSX.Element {
  const { results } = useDashboard()
  const live = useStore(results.entries)
  const [held, setHeld] = useState<readonly Entry[] | undefined>(undefined)
  const [filter, setFilter] = useState('')
  /** Held while somebody goes through it by keyboard: what has the focus must not run away. */
  const [walked, setWalked] = useState<readonly Entry[] | undefined>(undefined)
  const entries = (held ?? walked ?? live).filter((entry) => matches(entry, filter)).slice(0, shownEntries)
  const rows = entries.filter(({ kind }) => kind === 'sighting').map(({ key }) => key)
  const roving = useRoving(rows)
  const nowMs = serviceClock.now()
  return (
    <section class="panel sightings" aria-labelledby="sightings-title">
      <header class="panel-head">
        <h2 id="sightings-title">Newest detections</h2>
        <span class="muted zone" title="The zone of the times in this list; they are the service's">
          {walked !== undefined && held === undefined ? 'held while in use' : timeZone(nowMs)}
        </span>
        <button
          type="button"
          class="icon-button"
          aria-pressed={held !== undefined}
          aria-label={held === undefined ? 'Hold the list' : 'Let the list run'}
          title={held === undefined ? 'Hold the list' : 'Let the list run'}
          onClick={() => setHeld(held === undefined ? live : undefined)}
        >
          <Icon name={held === undefined ? 'pause' : 'play'} />
        </button>
      </header>
      <div class="filter">
        <Icon name="search" />
        <input
          id="sightings-filter"
          type="search"
          placeholder="Filter by label or camera"
          aria-label="Filter by label or camera"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return
            setFilter('')
            event.currentTarget.blur()
          }}
        />
        {filter === '' && <kbd aria-hidden="true">/</kbd>}
      </div>
      {entries.length === 0 ? (
        <p class="panel-empty">{filter === '' ? 'Nothing was found yet.' : 'Nothing fits this filter.'}</p>
      ) : (
        <ol
          class="sighting-list"
          aria-label="Newest detections, arrow keys go through them"
          onKeyDown={roving.onKeyDown}
          onFocusIn={(event) => {
            roving.onFocusIn(event)
            const byKeyboard = event.target instanceof Element && event.target.matches(':focus-visible')
            if (byKeyboard) setWalked((before) => before ?? live)
          }}
          onFocusOut={({ currentTarget, relatedTarget }) => {
            const within = relatedTarget instanceof Node && currentTarget.contains(relatedTarget)
            if (!within) setWalked(undefined)
          }}
        >
          {entries.map((entry) =>
            entry.kind === 'gap' ? (
              <GapRow key={entry.key} gap={entry} nowMs={nowMs} />
            ) : (
              <SightingRow
                key={entry.key}
                sighting={entry}
                nowMs={nowMs}
                roving={roving}
                onOpen={onOpen}
                onPick={setFilter}
              />
            ),
          )}
        </ol>
      )}
    </section>
  )
}

type RowProps = Readonly<{
  sighting: Sighting
  nowMs: number
  roving: Roving
  onOpen: (id: string) => void
  onPick: (label: string) => void
}>

function SightingRow({ sighting, nowMs, roving, onOpen, onPick }: RowProps): JSX.Element {
  const { key, cameraId, labels, firstAtMs, lastAtMs, frames } = sighting
  const lastsMs = lastAtMs - firstAtMs
  return (
    <li class="sighting" data-row={key}>
      <time dateTime={new Date(firstAtMs).toISOString()}>{moment(firstAtMs, nowMs)}</time>
      <button
        type="button"
        class="link-button camera-link"
        tabIndex={roving.tabIndex(key, 0)}
        onClick={() => onOpen(cameraId)}
      >
        {cameraId}
      </button>
      <span class="muted lasts" title={`${count(frames)} frames`}>
        {lastsMs >= 1_000 ? duration(lastsMs) : ''}
      </span>
      <LabelChips labels={labels} onPick={onPick} tabIndex={(chip) => roving.tabIndex(key, chip + 1)} />
    </li>
  )
}

function GapRow({ gap, nowMs }: Readonly<{ gap: Gap; nowMs: number }>): JSX.Element {
  const what = gap.dropped === 0 ? 'Some results are' : `${count(gap.dropped)} results are`
  const why = gap.reason === 'slow_client' ? 'this connection was too slow' : 'the break was too long'
  return (
    <li class="sighting gap">
      <time dateTime={new Date(gap.atMs).toISOString()}>{moment(gap.atMs, nowMs)}</time>
      <span>
        {what} missing here: {why}.
      </span>
    </li>
  )
}
