import type { RecordedFolder } from './recorded-folders.js'

type Problem = Readonly<{ message: string }>
type Opened = Readonly<{ error?: Problem; added?: Readonly<Record<string, unknown>> }>
type Told = Readonly<{ error?: Problem; config?: object; opened?: Opened | readonly Opened[] }>
type Readings = Readonly<{ cameras?: Told; clients: Told }>

/** Where the two readers said different things of a folder: what holds for both now. `undefined`: it is not about that folder. */
type Decision = Readonly<{
  meaning: string
  of: (cameras: Told, clients: Told, name: string) => Readings | undefined
}>

/** CHANGELOG.md names those that a user can see. */
export const decisions: readonly Decision[] = [
  {
    meaning: 'the configuration of cameras has the name and the numbers that clients are told',
    of: (cameras, clients, name) => {
      if (cameras.config === undefined) return undefined
      const config = clients.config ?? { ...cameras.config, name }
      const { added: { name: _, ...added } = {}, ...opened } = first(cameras) ?? {}
      const rest = Object.keys(added).length === 0 ? opened : { ...opened, added }
      return { cameras: { ...cameras, config, ...(cameras.opened && { opened: rest }) }, clients }
    },
  },
  {
    meaning:
      'the name of another folder, and a gantry.gpu_model that is not there, are refused at the reading',
    of: (_, clients) =>
      /unexpected directory name|gantry.gpu_model is .* no other/.test(clients.error?.message ?? '')
        ? { cameras: clients, clients }
        : undefined,
  },
  {
    meaning: 'a name that is no plain file name is refused at the reading, with its field',
    of: (cameras) => {
      const error = first(cameras)?.error
      return error?.message.endsWith('is not a plain file name') === true
        ? { cameras: { error }, clients: { error } }
        : undefined
    },
  },
]

function first({ opened }: Told): Opened | undefined {
  return (Array.isArray(opened) ? opened : [opened])[0] as Opened | undefined
}

/** What both sides say now of a folder that was recorded, and what was decided for that. */
export function decided({
  name,
  ...recorded
}: RecordedFolder): Readings & Readonly<{ by: readonly string[] }> {
  let { cameras, clients } = recorded as Readings
  const by: string[] = []
  for (const { meaning, of } of decisions) {
    const readings = cameras && of(cameras, clients, name)
    if (readings === undefined) continue
    ;({ cameras, clients } = readings)
    by.push(meaning)
  }
  return { ...(cameras && { cameras }), clients, by }
}
