import type { RepeatedLines } from '../lifecycle/repeated-lines.js'
import type { LoginMemory } from './camera-login.js'
import type { DecodeState } from './decode-policy.js'
import type { DecodeWays } from './decode-ways.js'
import type { HttpContent } from './http-content.js'

/** What one decoder run taught about the camera; the next run of the same source starts from it. */
export type DecoderMemory = {
  readonly ways: DecodeWays
  /** What an HTTP camera is. */
  content: HttpContent
  /** Messages of its decoders, one after another. */
  readonly repeated: RepeatedLines
  /** The file is played to its end, and begun anew from there: it cannot be wound back, or has shown nothing so far. */
  once?: boolean
  decode: DecodeState
  readonly logins: LoginMemory
}
