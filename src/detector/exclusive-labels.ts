import { suggestion } from '../config/suggest.js'
import { ModelConfigError } from '../repository/errors.js'
import { type ModelConfig, parameterOf } from '../repository/model-config.js'

const key = 'gantry.exclusive_labels'
const form =
  'Write labels of which a thing has only one with commas, groups with semicolons: "helmet, head; vest, no_vest".'

/**
 * Which classes exclude each other, by `gantry.exclusive_labels`.
 *
 * @returns the group of each class, classes of one group excluding each other; `undefined` where the parameter is absent.
 * @throws ModelConfigError for a label the model lacks or one in two groups, and for a group of one.
 */
export function exclusiveGroups(
  model: string,
  config: ModelConfig,
  labels: readonly string[] | undefined,
): readonly number[] | undefined {
  const text = parameterOf(config, key)
  if (text === undefined) return undefined
  const refuse = (what: string, hint = form): never => {
    throw new ModelConfigError(`model "${model}": parameter ${key} ${what}`, hint)
  }
  if (labels === undefined) return refuse('is set, but the model has no labels', 'Add a labels.txt.')
  const groups = labels.map((_, classId) => classId)
  const seen = new Set<string>()
  for (const part of text.split(';')) {
    const names = part.split(',').map((name) => name.trim())
    const [first = '', ...others] = names
    if (first === '' || others.length === 0)
      return refuse(`has the group "${part.trim()}" of fewer than two labels`)
    for (const name of names) {
      const classId = labels.indexOf(name)
      if (classId < 0)
        return refuse(`names "${name}", which is no label of the model`, suggestion(name, labels))
      if (seen.has(name)) return refuse(`names "${name}" twice`)
      seen.add(name)
      groups[classId] = labels.indexOf(first)
    }
  }
  return groups
}
