import { newestFfmpeg } from '../../scripts/lib/newest-ffmpeg.mjs'

/** For tables of tests: a name, and the folder that has it; '' for that of the system, undefined where it is not installed. */
export const bothFfmpegs = [
  ['the ffmpeg of the system', ''],
  ['the newest ffmpeg', newestFfmpeg()],
] as const
