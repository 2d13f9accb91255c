import type { DecoderExit } from './decoder-process.js'

/** What ffmpeg says when it cannot go on, and what a person should read instead. */
const known: readonly Readonly<{ pattern: RegExp; reason: string }>[] = [
  {
    pattern: /401 Unauthorized|403 Forbidden|authorization failed/i,
    reason: 'the camera refused the credentials',
  },
  {
    pattern: /404 (Stream )?Not Found|Server returned 404/i,
    reason: 'the camera has no stream at this path',
  },
  { pattern: /453 Not Enough Bandwidth|503 Service/i, reason: 'the camera takes no further session' },
  { pattern: /Connection refused/i, reason: 'connection refused' },
  { pattern: /No route to host|Network is unreachable/i, reason: 'the camera cannot be reached' },
  { pattern: /Failed to resolve hostname|Name or service not known/i, reason: 'the host name is unknown' },
  { pattern: /Connection timed out|Operation timed out/i, reason: 'the connection timed out' },
  {
    pattern: /Stream map '0:v:0' matches no streams|does not contain any stream/i,
    reason: 'there is no video in it',
  },
  { pattern: /Protocol .* not on whitelist/i, reason: 'it leads to a protocol that is not allowed' },
  { pattern: /Invalid data found when processing input/i, reason: 'it is not a video ffmpeg understands' },
  {
    pattern: /spawn \S+ ENOENT|failed to execute ffmpeg/i,
    reason: 'ffmpeg is not installed: apt-get install ffmpeg',
  },
  { pattern: /Connection reset by peer|Broken pipe/i, reason: 'the camera cut the connection' },
]

/**
 * Why a decoder ended, in words for a person. ffmpeg's exit code says nothing (a lost camera often gives 0).
 *
 * @param lastLines - redacted, newest last.
 */
export function failureReason(exit: DecoderExit, lastLines: readonly string[]): string {
  for (const line of [...lastLines].reverse()) {
    const match = known.find(({ pattern }) => pattern.test(line))
    if (match) return match.reason
  }
  if (exit.signal) return `decoder was ended by ${exit.signal}`
  const last = lastLines.at(-1)
  return last ? `decoder ended: ${last.replace(/^\[[^\]]*\]\s*/, '')}` : 'the stream ended'
}

/** Whether the failure speaks of the hardware decoder, so that software may still do. */
export function isHwaccelFailure(lastLines: readonly string[]): boolean {
  return lastLines.some((line) =>
    /hwaccel|hardware device|Device creation failed|No device available|vaapi|cuda|Failed to create .* device/i.test(
      line,
    ),
  )
}
