export type Shortcut = 'add' | 'help' | 'filter' | 'theme' | 'cameras' | 'models'

const byKey: Readonly<Record<string, Shortcut>> = {
  a: 'add',
  '?': 'help',
  '/': 'filter',
  t: 'theme',
  c: 'cameras',
  m: 'models',
}

/** What a key means on the page; nothing while someone types, while a window is open, or with Ctrl, Alt or Meta. */
export function shortcutOf(event: KeyboardEvent): Shortcut | undefined {
  if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return undefined
  if (isTyping(event.target) || document.querySelector('dialog[open]') !== null) return undefined
  return byKey[event.key]
}

export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
}
