/** Keys and indices that lead from the root of the settings to one of them. */
export type SettingPath = readonly (string | number)[]

/** `['cameras', 0, 'url']` as `cameras[0].url`. */
export function formatPath(path: SettingPath): string {
  return path.reduce<string>(
    (text, step) => (typeof step === 'number' ? `${text}[${step}]` : text === '' ? step : `${text}.${step}`),
    '',
  )
}

/** The reverse of {@link formatPath}; `cameras.0.url` is understood as well. */
export function parsePath(text: string): SettingPath {
  return text
    .replaceAll(/\[(\d+)\]/g, '.$1')
    .split('.')
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step))
}

type Container = Record<string | number, unknown>

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null
}

export function getAt(root: unknown, path: SettingPath): unknown {
  return path.reduce<unknown>((value, step) => (isContainer(value) ? value[step] : undefined), root)
}

/** The first list on the way that ends before the index: setting a value there would leave entries without any. */
export function listTooShort(
  root: unknown,
  path: SettingPath,
): Readonly<{ list: SettingPath; entries: number }> | undefined {
  for (const [index, step] of path.entries()) {
    if (typeof step !== 'number') continue
    const list = getAt(root, path.slice(0, index))
    const entries = Array.isArray(list) ? list.length : 0
    if (step > entries) return { list: path.slice(0, index), entries }
  }
  return undefined
}

/** Sections before what is in them, entries of a list in their order. */
export function comparePaths(a: SettingPath, b: SettingPath): number {
  for (const [index, step] of a.entries()) {
    const other = b[index]
    if (other === undefined) return 1
    if (typeof step === 'number' && typeof other === 'number' && step !== other) return step - other
    if (step !== other) return String(step) < String(other) ? -1 : 1
  }
  return a.length - b.length
}

/** Sets a value deep inside `root`, making the objects and arrays on the way. */
export function setAt(root: Container, path: SettingPath, value: unknown): void {
  let at = root
  path.forEach((step, index) => {
    const next = path[index + 1]
    if (next === undefined) return void define(at, step, value)
    if (!isContainer(at[step])) define(at, step, typeof next === 'number' ? [] : {})
    at = at[step] as Container
  })
}

/** Not an assignment: a key named `__proto__` must stay a key. */
function define(container: Container, step: string | number, value: unknown): void {
  Object.defineProperty(container, step, { value, writable: true, enumerable: true, configurable: true })
}
