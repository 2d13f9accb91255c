import type { JSX } from 'preact'

/** A number with its name, in a list of such. */
export function Figure({ name, value }: Readonly<{ name: string; value: string }>): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}
