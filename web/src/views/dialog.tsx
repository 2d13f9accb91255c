import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Icon } from './icon.js'

type DialogProps = Readonly<{
  title: string
  onClose: () => void
  class?: string
  /** For questions that must be answered before anything else. */
  alert?: boolean
  /** Without a way to close it, as for the token. */
  fixed?: boolean
  /** Buttons beside the title. */
  tools?: ComponentChildren
  children: ComponentChildren
}>

/** A modal window: the browser keeps the focus inside, closes it with Escape and gives the focus back. */
export function Dialog({
  title,
  onClose,
  alert = false,
  fixed = false,
  tools,
  children,
  ...rest
}: DialogProps): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null)
  // One may be open above another.
  const titleId = useId()
  useEffect(() => {
    const before = document.activeElement
    ref.current?.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      class={`dialog ${rest.class ?? ''}`}
      role={alert ? 'alertdialog' : 'dialog'}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        if (!fixed) onClose()
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current && !fixed) onClose()
      }}
    >
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={titleId}>{title}</h2>
          {tools}
          {!fixed && (
            <button type="button" class="icon-button" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </header>
        {children}
      </div>
    </dialog>
  )
}
