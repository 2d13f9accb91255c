import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'
import { useStore } from '../state/store.js'
import { toggleTheme } from '../state/theme.js'
import { AddCamera } from './add-camera.js'
import { Banner } from './banner.js'
import { CameraGrid } from './camera-grid.js'
import { CameraDetail } from './camera-detail.js'
import { GpuPanel } from './gpu-panel.js'
import { Header } from './header.js'
import { Help } from './help.js'
import { RemoveCamera } from './remove-camera.js'
import { SightingsPanel } from './sightings-panel.js'
import { SystemPanel } from './system-panel.js'
import { Toasts } from './toasts.js'
import { TokenDialog } from './token-dialog.js'
import { TrendsPanel } from './trends-panel.js'
import { shortcutOf } from './shortcuts.js'

export type Open =
  Readonly<{ what: 'add' | 'help' }> | Readonly<{ what: 'camera' | 'remove'; id: string }> | undefined

/** The whole page. */
export function App(): JSX.Element {
  const { poller } = useDashboard()
  const link = useStore(poller.link)
  const [open, setOpen] = useState<Open>(undefined)
  const close = (): void => setOpen(undefined)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const shortcut = shortcutOf(event)
      if (shortcut === undefined) return
      event.preventDefault()
      if (shortcut === 'filter') document.querySelector<HTMLInputElement>('#sightings-filter')?.focus()
      else if (shortcut === 'theme') toggleTheme()
      else setOpen({ what: shortcut })
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [])
  return (
    <>
      <a class="skip-link" href="#cameras">
        Skip to the cameras
      </a>
      <Header onAdd={() => setOpen({ what: 'add' })} onHelp={() => setOpen({ what: 'help' })} />
      <Banner />
      <main class="layout">
        <CameraGrid
          onAdd={() => setOpen({ what: 'add' })}
          onOpen={(id) => setOpen({ what: 'camera', id })}
          onRemove={(id) => setOpen({ what: 'remove', id })}
        />
        <aside class="side" aria-label="Figures and detections">
          <TrendsPanel />
          <GpuPanel />
          <SightingsPanel onOpen={(id) => setOpen({ what: 'camera', id })} />
          <SystemPanel />
        </aside>
      </main>
      {open?.what === 'add' && <AddCamera onClose={close} />}
      {open?.what === 'help' && <Help onClose={close} />}
      {open?.what === 'camera' && (
        <CameraDetail
          id={open.id}
          onClose={close}
          onShow={(id) => setOpen({ what: 'camera', id })}
          onRemove={(id) => setOpen({ what: 'remove', id })}
        />
      )}
      {open?.what === 'remove' && <RemoveCamera id={open.id} onClose={close} />}
      {link.state === 'locked' && <TokenDialog />}
      <Toasts />
    </>
  )
}
