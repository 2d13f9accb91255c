/** Line to show when this Node is too old for the service; undefined when it will do. */
export function nodeProblem(version = process.versions.node) {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return undefined
  return `Node ${version} is too old: Gantry needs 20.19 or newer. Install it from https://nodejs.org/ or with nvm.`
}
