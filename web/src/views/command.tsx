import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Icon } from './icon.js'

/** A command to be copied. Where the browser lets no page copy, its text is selected instead. */
export function Command({ text, label }: Readonly<{ text: string; label: string }>): JSX.Element {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 2_000)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = async (button: HTMLElement): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setCopied(true)
    } catch {
      // Over plain HTTP from another machine there is no clipboard.
      const code = button.parentElement?.querySelector('pre')
      if (code) getSelection()?.selectAllChildren(code)
    }
  }
  return (
    <div class="command">
      {/* A long one is scrolled by the keyboard, too. */}
      <pre tabIndex={0} role="group" aria-label={label}>
        {text}
      </pre>
      <button
        type="button"
        class="icon-button"
        aria-label={`Copy: ${label}`}
        title="Copy"
        onClick={(event) => void copy(event.currentTarget)}
      >
        <Icon name={copied ? 'check' : 'copy'} />
      </button>
      <span class="visually-hidden" role="status">
        {copied ? 'Copied' : ''}
      </span>
    </div>
  )
}
