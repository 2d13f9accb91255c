const modelName = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/

/** Names that can be a folder of a repository: no separators, no leading dot. */
export function isModelName(name: string): boolean {
  return modelName.test(name)
}
