import { extname } from 'node:path'

const stillNames = /^\.(jpe?g|png)$/i
const videoNames = /^\.(mp4|m4v|mov|mkv|webm|avi|ts|mts|m2ts|mpe?g|flv|h264|h265|hevc|mjpe?g|ogv)$/i

/** What a file is by the end of its name; `undefined` for anything that is not decoded here. */
export function mediaKind(name: string): 'picture' | 'video' | undefined {
  const end = extname(name)
  if (stillNames.test(end)) return 'picture'
  return videoNames.test(end) ? 'video' : undefined
}

/** The order of names in a folder: 2.jpg before 10.jpg. */
export const byFileName = new Intl.Collator('en', { numeric: true }).compare
