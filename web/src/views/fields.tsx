import type { JSX } from 'preact'
import type { FormValues } from './camera-form.js'

export type FormState = Readonly<{
  values: FormValues
  set: (name: string, value: string | boolean) => void
  /** By field name; from the server. */
  errors: Readonly<Record<string, string>>
}>

type FieldProps = Readonly<{ state: FormState; name: string; label: string; help?: string }>

type TextProps = FieldProps &
  Readonly<{ placeholder?: string; inputMode?: 'decimal' | 'numeric'; autofocus?: boolean; hidden?: boolean }>

export function TextField({
  state,
  name,
  label,
  help,
  placeholder,
  inputMode,
  autofocus,
  hidden = false,
}: TextProps): JSX.Element {
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      <input
        name={name}
        type={hidden ? 'password' : 'text'}
        value={String(state.values[name] ?? '')}
        placeholder={placeholder}
        inputMode={inputMode}
        autofocus={autofocus}
        autocomplete={hidden ? 'new-password' : 'off'}
        spellcheck={false}
        aria-invalid={state.errors[name] !== undefined}
        aria-describedby={`${name}-note`}
        onInput={(event) => state.set(name, event.currentTarget.value)}
      />
      <Note state={state} name={name} help={help} />
    </label>
  )
}

type SelectProps = FieldProps & Readonly<{ options: readonly (readonly [value: string, text: string])[] }>

export function SelectField({ state, name, label, help, options }: SelectProps): JSX.Element {
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      <select
        name={name}
        value={String(state.values[name])}
        aria-invalid={state.errors[name] !== undefined}
        aria-describedby={`${name}-note`}
        onChange={(event) => state.set(name, event.currentTarget.value)}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      <Note state={state} name={name} help={help} />
    </label>
  )
}

export function CheckField({ state, name, label }: FieldProps): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        name={name}
        checked={state.values[name] === true}
        onChange={(event) => state.set(name, event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  )
}

/** What is wrong, or else what the field is for. */
function Note({
  state,
  name,
  help,
}: Readonly<{ state: FormState; name: string; help: string | undefined }>): JSX.Element {
  const error = state.errors[name]
  return (
    <span id={`${name}-note`} class={error === undefined ? 'field-help' : 'field-error'}>
      {error ?? help ?? ''}
    </span>
  )
}
