import type { RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { useDashboard } from '../state/context.js'

/**
 * Plays a camera on a canvas while the canvas is on the screen, and asks the server for its pictures only then.
 *
 * @param active - `false` for a camera that sends none.
 * @returns whether there is a picture.
 */
export function usePlayer(canvas: RefObject<HTMLCanvasElement>, cameraId: string, active: boolean): boolean {
  const { pictures } = useDashboard()
  const [has, setHas] = useState(() => pictures.player(cameraId).hasPicture)
  useEffect(() => {
    const element = canvas.current
    if (element === null) return
    const player = pictures.player(cameraId)
    setHas(player.hasPicture)
    const forget = player.onFirst(() => setHas(true))
    const detach = player.attach(element)
    return () => {
      detach()
      forget()
    }
  }, [cameraId, canvas, pictures])
  useEffect(() => {
    const element = canvas.current
    if (element === null || !active) return
    let unwatch: (() => void) | undefined
    const observer = new IntersectionObserver((entries) => {
      const visible = entries.at(-1)?.isIntersecting === true
      if (visible) unwatch ??= pictures.watch(cameraId)
      else {
        unwatch?.()
        unwatch = undefined
      }
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      unwatch?.()
    }
  }, [cameraId, canvas, pictures, active])
  return has
}
