/**
 * `package.json` of the packed form: for one platform, with the versions that were tested, all of them inside.
 *
 * @param manifest - that of the repository.
 * @param locked - `packages` of its package-lock.json.
 * @param version - with what tells a changed tree from a commit.
 */
export function packedManifest(manifest, locked, platform, version, gitHead) {
  const exactly = (names = {}) =>
    Object.fromEntries(Object.keys(names).map((name) => [name, locked[`node_modules/${name}`].version]))
  const { description, license, type, engines, bin, exports } = manifest
  // Nothing of it is optional for who installs it: all is there.
  const dependencies = { ...exactly(manifest.dependencies), ...exactly(manifest.optionalDependencies) }
  return {
    name: manifest.name,
    version,
    description,
    license,
    private: true,
    type,
    engines,
    os: [platform.os],
    cpu: [platform.cpu],
    libc: [platform.libc],
    bin,
    exports,
    dependencies,
    bundleDependencies: Object.keys(dependencies),
    gitHead,
  }
}
