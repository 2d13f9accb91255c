import { useEffect, useState } from 'preact/hooks'
import { api, type Snapshot } from '../api/client.js'

/** From one picture to the next question: most cameras have a new key frame every second or two. */
const pauseMs = 1_000

export type Snapshots = Readonly<{
  /** Address of the newest, for an `<img>`; it holds until the next one is there. */
  url?: string
  facts?: Snapshot['facts']
  /** Why there is none, or no newer one; empty when all is well. */
  trouble: string
}>

/** Pictures of a camera in its own resolution, one after the other, as long as it is asked and the page is seen. */
export function useSnapshots(cameraId: string, isWanted: boolean, overlay: boolean): Snapshots {
  const [shown, show] = useState<Snapshots>({ trouble: '' })
  useEffect(() => {
    if (!isWanted) return undefined
    const ended = new AbortController()
    let url: string | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    const next = async (): Promise<void> => {
      try {
        if (!document.hidden) {
          const { blob, facts } = await api.snapshot(cameraId, overlay, ended.signal)
          if (ended.signal.aborted) return
          const before = url
          url = URL.createObjectURL(blob)
          show({ url, facts, trouble: '' })
          if (before !== undefined) setTimeout(() => URL.revokeObjectURL(before), pauseMs)
        }
      } catch (error) {
        if (ended.signal.aborted) return
        const trouble = error instanceof Error ? error.message : 'No picture came.'
        show((last) => ({ ...last, trouble }))
      }
      timer = setTimeout(() => void next(), pauseMs)
    }
    void next()
    return () => {
      ended.abort()
      clearTimeout(timer)
      show({ trouble: '' })
      if (url !== undefined) URL.revokeObjectURL(url)
    }
  }, [cameraId, isWanted, overlay])
  return shown
}
