import type { CameraConfig } from '../config/camera.js'
import type { CameraDecoding, DecodeMode, DecodePlace } from '../vision/camera-state.js'

/** What is known of a stream besides its key frames. */
export type StreamFacts = Readonly<{
  /** ffmpeg's name of it; undefined before the stream is open. */
  codec: string | undefined
  by: DecodePlace
  /** As people are told. */
  byReason: string
  /** Which video of several is shown, for people; absent where there is one. */
  track?: string | undefined
  /** Whether it may be opened anew in the midst of it: a file that is shown once would begin again. */
  restartable: boolean
}>

/** What was learnt of the key frames of a camera, over the lives of its decoders. */
export type DecodeState = Readonly<{
  mode: DecodeMode
  /** From one key frame to the next; the newest last. */
  gapsMs: readonly number[]
  /** Gaps in a row with which key frames alone were enough. */
  enough: number
  /** How many it takes until they are decoded alone. Doubles each time that it did not last, so that no stream restarts its decoder for ever. */
  patience: number
}>

type Wanted = Pick<CameraConfig, 'decode' | 'sampleFps'>

const keptGaps = 8
const firstPatience = 3
const mostPatience = 1_536
/** Gaps in a row after which being alone has lasted. */
const lastingGaps = 200

/** A key frame comes a little late at times; the sampler takes one that comes a quarter of a period early. */
const lateShare = 1.25
/** By how much the period may be missed by most of them: the clocks of cameras differ from ours. Less to begin than to go on. */
const driftShare = { toBegin: 1.02, toGoOn: 1.05 }

/** Every picture of them is a key frame. */
const intraOnly = /^(mjpeg|jpegls|jpeg2000|png|gif|prores|dnxhd|rawvideo)$/
/** Their decoders in software have a loop filter that can be left out. */
const filtered = /^(h264|hevc|vp8|vp9)$/

const longestGapMs = 600_000

export function initialDecodeState({ decode }: Pick<CameraConfig, 'decode'>): DecodeState {
  return { mode: decode === 'auto' ? 'full' : decode, gapsMs: [], enough: 0, patience: firstPatience }
}

/**
 * What is to be decoded after one more key frame. `auto` takes key frames alone once they come as often as pictures are wanted, and
 * goes back when they no longer do; a single one that is lost changes nothing.
 *
 * @param gapMs - since the key frame before, by the clock of the stream; what is no such time is passed over.
 */
export function afterGap(
  state: DecodeState,
  gapMs: number,
  wanted: Wanted,
  stream: StreamFacts,
): DecodeState {
  if (!(gapMs > 0 && gapMs <= longestGapMs)) return state
  const periodMs = 1_000 / wanted.sampleFps
  const gapsMs = [...state.gapsMs, gapMs].slice(-keptGaps)
  const isEnough = gapMs <= periodMs * lateShare && middle(gapsMs) <= periodMs * driftShare.toBegin
  const next = { ...state, gapsMs, enough: isEnough ? state.enough + 1 : 0 }
  if (wanted.decode !== 'auto') return next
  if (state.mode === 'keyframes') {
    const late = gapsMs.slice(-3).filter((each) => each > periodMs * lateShare)
    const isSlower = gapsMs.length === keptGaps && middle(gapsMs) > periodMs * driftShare.toGoOn
    const lasting = { ...next, enough: isEnough ? next.enough : state.enough }
    return late.length >= 2 || isSlower ? withAllPictures(lasting) : lasting
  }
  const alone = next.enough >= state.patience && stream.restartable && !intraOnly.test(stream.codec ?? '')
  return alone ? { ...next, mode: 'keyframes', enough: 0 } : next
}

/** Key frames alone turned out to be too few. */
export function withAllPictures(state: DecodeState): DecodeState {
  const lasted = state.enough >= lastingGaps
  const patience = lasted ? firstPatience : Math.min(mostPatience, 2 * state.patience)
  return { mode: 'full', gapsMs: [], enough: 0, patience }
}

/** How a stream is decoded, as people are told, and whether it gives fewer pictures than are wanted. */
export type ToldDecoding = CameraDecoding & Readonly<{ tooFew: boolean }>

/**
 * @param before - what was told last: times that differ by little are not told anew.
 */
export function toldDecoding(
  { mode, gapsMs }: DecodeState,
  { decode, sampleFps }: Wanted,
  stream: StreamFacts,
  before?: ToldDecoding,
): ToldDecoding {
  const keyFrameGapMs = gapToTell(gapsMs, before?.keyFrameGapMs ?? null)
  const keys = keyFrameGapMs === null ? undefined : `key frames come every ${seconds(keyFrameGapMs)} s`
  const { by, byReason } = stream
  const track = stream.track === undefined ? {} : { track: stream.track }
  const tooFew = mode === 'keyframes' && (keyFrameGapMs ?? 0) > (lateShare * 1_000) / sampleFps
  if (tooFew) {
    const fps = rounded(1_000 / (keyFrameGapMs ?? 1_000))
    const reason = `${keys}: ${fps} results a second instead of ${rounded(sampleFps)}`
    return { mode, keyFrameGapMs, tooFew, reason, by, byReason, ...track }
  }
  const unfiltered = mode === 'fast' ? whyNotFast(stream) : undefined
  const reason = decode === 'auto' ? whyAuto(keys, sampleFps, stream) : (unfiltered ?? '')
  const shown = unfiltered === undefined ? mode : 'full'
  return { mode: shown, keyFrameGapMs, tooFew, reason, by, byReason, ...track }
}

function whyAuto(keys: string | undefined, sampleFps: number, { codec, restartable }: StreamFacts): string {
  if (!restartable) return 'a file that is shown once is not begun anew'
  if (codec !== undefined && intraOnly.test(codec)) return `every picture of ${codec} is a key frame`
  return keys === undefined
    ? 'two key frames have not come yet'
    : `${keys}, and sampleFps is ${rounded(sampleFps)}`
}

/** @returns undefined where leaving out the loop filter saves something. */
function whyNotFast({ codec, by }: StreamFacts): string | undefined {
  if (by !== 'software') return 'decoders in hardware leave no loop filter out'
  return codec === undefined || filtered.test(codec)
    ? undefined
    : `${codec} is decoded without a loop filter anyway`
}

/** How long the next key frame may take, when nothing else is decoded. */
export function longestKeyWaitMs(gapsMs: readonly number[], mediaComes: boolean | undefined): number {
  // Cameras stretch the time between key frames while little moves, some to a minute.
  const known = 3 * Math.max(0, ...gapsMs)
  if (mediaComes === true) return Math.max(120_000, known)
  return Math.max(gapsMs.length === 0 ? 60_000 : 30_000, known)
}

function gapToTell(gapsMs: readonly number[], before: number | null): number | null {
  if (gapsMs.length === 0) return before
  const gapMs = Math.round(middle(gapsMs))
  return before !== null && Math.abs(gapMs - before) <= 0.1 * before ? before : gapMs
}

function middle(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const half = (sorted.length - 1) / 2
  return ((sorted[Math.floor(half)] ?? 0) + (sorted[Math.ceil(half)] ?? 0)) / 2
}

function seconds(ms: number): string {
  return rounded(ms / 1_000)
}

function rounded(value: number): string {
  return String(Number(value.toPrecision(2)))
}
