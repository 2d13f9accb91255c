/** What a program of others may see of our environment; secrets of the service are not among it. */
const passedOn =
  /^(PATH|HOME|LANG|LC_.*|TZ|TMPDIR|LD_LIBRARY_PATH|LIBVA_.*|DRI_PRIME|CUDA_.*|NVIDIA_.*|SSL_CERT_(FILE|DIR))$/

/** The environment of a decoder, or of another program that is not ours. */
export function childEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => passedOn.test(name)))
}
