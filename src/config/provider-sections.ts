import { z } from 'zod'
import { type Option, optionTables, type OptionSection, type TunedProvider } from './provider-options.js'

/** The section of a provider in the pipeline file. */
export function optionsSchema(provider: TunedProvider): z.ZodType<OptionSection> {
  const fields = Object.entries<Option>(optionTables[provider]).map(
    ([name, option]) => [name, schemaOf(option).optional().describe(option.means)] as const,
  )
  // The table says which types there are: they are not known to the compiler.
  return z.strictObject(Object.fromEntries(fields)) as unknown as z.ZodType<OptionSection>
}

function schemaOf(option: Option): z.ZodType {
  switch (option.kind) {
    case 'flag':
      return z.boolean()
    case 'number':
      return z.number().int().min(option.from)
    case 'word':
      return z.enum(option.words)
    case 'text':
      return z.string().min(1)
    default:
      return option satisfies never
  }
}
