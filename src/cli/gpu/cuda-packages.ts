import type { CudaMajor } from './nvidia-driver.js'

/** Which libraries of CUDA and cuDNN to bring: those that the system lacks, all that are needed, or none. */
export const libraryChoices = ['missing', 'all', 'none'] as const
export type LibraryChoice = (typeof libraryChoices)[number]

/** Something to bring, and how large it was when this was written: it grows with each version. */
export type CudaPackage = Readonly<{
  /** On PyPI. */
  name: string
  /** As pip takes them: `==13.*`. */
  versions: string
  /** Names by which the loader of the system looks for its libraries. */
  libraries: readonly string[]
  /** Names of the files to take out of it. */
  files: RegExp
  downloadMb: number
  unpackedMb: number
}>

/** Libraries of CUDA and cuDNN that the provider needs, or those that it needs. */
export const libraryPackages: Readonly<Record<CudaMajor, readonly CudaPackage[]>> = {
  13: [
    library('nvidia-cuda-runtime', '==13.*', ['libcudart.so.13'], 3, 8),
    library('nvidia-cublas', '==13.*', ['libcublasLt.so.13', 'libcublas.so.13'], 444, 610),
    library('nvidia-cuda-nvrtc', '==13.*', ['libnvrtc.so.13'], 58, 149),
    library('nvidia-nvjitlink', '==13.*', ['libnvJitLink.so.13'], 47, 117),
    library('nvidia-cufft', '==12.*', ['libcufft.so.12'], 165, 239),
    library('nvidia-curand', '==10.*', ['libcurand.so.10'], 77, 107),
    library('nvidia-cudnn-cu13', '==9.*', ['libcudnn.so.9'], 517, 941),
  ],
  12: [
    library('nvidia-cuda-runtime-cu12', '==12.*', ['libcudart.so.12'], 4, 10),
    library('nvidia-cublas-cu12', '==12.*', ['libcublasLt.so.12', 'libcublas.so.12'], 581, 850),
    library('nvidia-cuda-nvrtc-cu12', '==12.*', ['libnvrtc.so.12'], 90, 220),
    library('nvidia-nvjitlink-cu12', '==12.*', ['libnvJitLink.so.12'], 40, 100),
    library('nvidia-cufft-cu12', '==11.*', ['libcufft.so.11'], 201, 290),
    library('nvidia-curand-cu12', '==10.*', ['libcurand.so.10'], 68, 160),
    library('nvidia-cudnn-cu12', '==9.*', ['libcudnn.so.9'], 717, 1300),
  ],
}

/** ONNX Runtime's own libraries for a GPU, of the version of the runtime that loads them. */
export function providerPackage(version: string): CudaPackage {
  return {
    name: 'onnxruntime-gpu',
    versions: `==${version}`,
    libraries: [],
    files: /^libonnxruntime_providers_(shared|cuda|tensorrt)\.so$/,
    downloadMb: 247,
    unpackedMb: 337,
  }
}

function library(
  name: string,
  versions: string,
  libraries: readonly string[],
  downloadMb: number,
  unpackedMb: number,
): CudaPackage {
  return { name, versions, libraries, files: /\.so(\.\d+)*$/, downloadMb, unpackedMb }
}
