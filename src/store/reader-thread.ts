import '../lifecycle/catch-warnings.js'
import { parentPort, workerData } from 'node:worker_threads'
import { InternalError } from '../errors.js'
import { StoreFile } from './store-file.js'
import type { ReaderAnswer, ReaderAnswers, ReaderQuestion } from './store-messages.js'
import { isStoreDamaged, storeTroubleOf } from './store-trouble.js'

/** Entry of the thread that reads records and moves what was written from the log into the file: neither holds up a commit. */
if (parentPort === null) throw new InternalError('reader-thread runs in a worker thread only')
const port = parentPort
const { path } = workerData as { path: string }
const tendEveryMs = 1_000
/** A longer log makes reading slow; a shorter one is moved too often. */
const tendAboveBytes = 4 * 1024 ** 2

let file: StoreFile | undefined

/** After an error the file may be another one: the damaged one was moved away. */
function withFile<T>(work: (opened: StoreFile) => T, none: NoInfer<T>): T {
  try {
    file ??= StoreFile.openToTend(path)
    return file ? work(file) : none
  } catch (error) {
    file?.close()
    file = undefined
    throw error
  }
}

function read(question: ReaderQuestion): ReaderAnswers[keyof ReaderAnswers] {
  switch (question.type) {
    case 'forSink': {
      const { sink, after, below, records, bytes } = question
      return withFile((opened) => opened.forSink(sink, after, below, { records, bytes }), [])
    }
    case 'range':
      return withFile((opened) => opened.range(question.query), [])
    case 'coverage': {
      const { cameraId, fromMs, toMs, limit } = question
      return withFile((opened) => opened.coverage.range(cameraId, fromMs, toMs, limit), [])
    }
    case 'coverageEnds':
      return withFile((opened) => opened.coverage.ends(), new Map<string, number>())
    default:
      return question satisfies never
  }
}

const timer = setInterval(() => {
  try {
    withFile((opened) => opened.logBytes > tendAboveBytes && opened.tend(), false)
  } catch {
    // The writer meets the same trouble, and tells.
  }
}, tendEveryMs)

port.on('message', (message: 'close' | 'reopen' | Readonly<{ id: number; question: ReaderQuestion }>) => {
  if (message === 'close') {
    clearInterval(timer)
    file?.close()
    port.close()
    return
  }
  if (message === 'reopen') {
    file?.close()
    file = undefined
    return
  }
  const { id, question } = message
  try {
    port.postMessage({ id, value: read(question) } satisfies ReaderAnswer)
  } catch (error) {
    const [failed, isDamaged] = [storeTroubleOf(error, path), isStoreDamaged(error)]
    port.postMessage({ id, failed, isDamaged } satisfies ReaderAnswer)
  }
})
