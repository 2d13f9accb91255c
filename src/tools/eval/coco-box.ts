/** Left, top, width and height in pixels, as COCO has it: `[x, y, w, h]`. */
export type CocoBox = readonly [x: number, y: number, w: number, h: number]

/**
 * Overlap of a detection and a truth. Of a crowd it is the part of the detection that lies in it, since that may be one of many in there.
 *
 * @returns intersection over union, 0..1; 0 where the boxes have no area in common.
 * @see pycocotools `bbIou`, whose order of operations is kept, so that the results are the same bits.
 */
export function overlap(found: CocoBox, truth: CocoBox, crowd: boolean): number {
  const [x, y, w, h] = found
  const [tx, ty, tw, th] = truth
  const width = Math.min(w + x, tw + tx) - Math.max(x, tx)
  if (width <= 0) return 0
  const height = Math.min(h + y, th + ty) - Math.max(y, ty)
  if (height <= 0) return 0
  const common = width * height
  const area = w * h
  return common / (crowd ? area : area + tw * th - common)
}
