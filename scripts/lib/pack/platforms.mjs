/** What `npm run pack` can pack for: words of npm for the system, and files without which the package would not run. */
export const platforms = {
  'linux-x64': { os: 'linux', cpu: 'x64', libc: 'glibc' },
  'linux-arm64': { os: 'linux', cpu: 'arm64', libc: 'glibc' },
}

/** Folder of ONNX Runtime's binaries inside of its package, for one platform. */
const runtimeFolder = ({ os, cpu }) => `onnxruntime-node/bin/napi-v6/${os}/${cpu}`

/** Paths below `node_modules` that a package for the platform must have. */
export function neededBinaries(platform) {
  const { os, cpu } = platform
  return [
    `${runtimeFolder(platform)}/onnxruntime_binding.node`,
    `@img/sharp-${os}-${cpu}/package.json`,
    `@img/sharp-libvips-${os}-${cpu}/package.json`,
    `@antoniomuso/lz4-napi-${os}-${cpu}-gnu/package.json`,
    `@napi-rs/snappy-${os}-${cpu}-gnu/package.json`,
    `@koromix/koffi-${os}-${cpu}/package.json`,
  ]
}

/** Whether a path below `node_modules` is a binary of ONNX Runtime for another platform. */
export function isForOthers(path, platform) {
  return path.startsWith('onnxruntime-node/bin/') && !path.startsWith(`${runtimeFolder(platform)}/`)
}
