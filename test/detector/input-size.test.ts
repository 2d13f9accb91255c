import { describe, expect, it } from 'vitest'
import {
  freeSize,
  inputSize,
  noCameraShapes,
  sizeForCameras,
  type SizedInput,
  sizeText,
} from '../../src/detector/input-size.js'
import { emptyModelConfig, type ModelConfig } from '../../src/repository/model-config.js'
import type { SizePx } from '../../src/vision/letterbox.js'

const size = (text: string): SizePx => {
  const [widthPx = 0, heightPx = 0] = text.split('x').map(Number)
  return { widthPx, heightPx }
}
const shapes = (...pictures: string[]) => ({ pictures: pictures.map(size), cameras: pictures.length })

describe('R66: imgsz of the metadata', () => {
  const free = { name: 'images', type: 'float32', shape: ['N', 3, 'h', 'w'] } as const
  const of = (imgsz: string): SizedInput => ({
    name: 'm',
    config: emptyModelConfig,
    metadata: { imgsz },
    tensor: free,
    heightAt: 2,
  })

  it.each([
    ['640', '640x640'],
    ['[640]', '640x640'],
    ['(640,)', '640x640'],
    ['[384, 640]', '640x384'],
    ['(384, 640)', '640x384'],
    ['384,640', '640x384'],
    ['384 640', '640x384'],
    ['"640"', '640x640'],
    ['["384", "640"]', '640x384'],
    ["'[384, 640]'", '640x384'],
    ['[640.0, 640.0]', '640x640'],
    ['[1, 3, 384, 640]', '640x384'],
    ['640x640', '640x640'],
    ['{"height": 384, "width": 640}', '640x384'],
    ["{'w': 640, 'h': 384}", '640x384'],
  ])('%s is %s', (imgsz, expected) => {
    expect(sizeText(inputSize(of(imgsz), 'gantry.input_size').size)).toBe(expected)
  })

  it.each(['640x384', 'auto', '-1', '[1, 640, 640, 3]', '[3, 384, 640]', '4'])('%s is told', (imgsz) => {
    expect(() => inputSize(of(imgsz), 'gantry.input_size')).toThrow(
      `does not tell the size of its picture, and imgsz of its metadata, ${JSON.stringify(imgsz)}, is not understood`,
    )
    expect(freeSize(of(imgsz))).toMatchObject({
      fixedBy: expect.stringContaining('not understood') as string,
    })
  })
})

describe('the size for cameras', () => {
  it.each([
    ['1280x720', '640x384'],
    ['768x432', '640x384'],
    // Rounding makes these a little less or more than 16:9.
    ['854x480', '640x384'],
    ['848x480', '640x384'],
    ['640x480', '640x480'],
    ['720x576', '640x512'],
    ['1080x1920', '384x640'],
    ['1000x1000', '640x640'],
    ['2560x960', '640x256'],
    // Nothing is less than a cell.
    ['10000x10', '640x32'],
  ])('is, for pictures of %s, %s', (picture, expected) => {
    const { size: found } = sizeForCameras({ most: size('640x640'), stride: 32 }, shapes(picture))
    expect(sizeText(found)).toBe(expected)
  })

  it('is a multiple of the stride, and never beyond the box of the model', () => {
    const forHd = (most: string, stride: number) =>
      sizeText(sizeForCameras({ most: size(most), stride }, shapes('1280x720')).size)
    expect(forHd('640x640', 64)).toBe('640x384')
    expect(forHd('1280x1280', 64)).toBe('1280x768')
    expect(forHd('416x416', 32)).toBe('416x256')
    expect(forHd('300x300', 32)).toBe('300x192')
    expect(forHd('640x384', 32)).toBe('640x384')
    expect(forHd('640x370', 32)).toBe('640x370')
  })

  it('is the one that most cameras fill, and of two the larger one', () => {
    const free = { most: size('640x640'), stride: 32 }
    const hd = ['1280x720', '768x432', '854x480']
    expect(sizeForCameras(free, { pictures: [...hd, '640x480'].map(size), cameras: 7 })).toEqual({
      size: size('640x384'),
      from: 'the shape of 3 of 7 cameras',
    })
    expect(sizeForCameras(free, shapes('1280x720', '640x480')).size).toEqual(size('640x480'))
    expect(sizeForCameras(free, shapes('640x480')).from).toBe('the shape of 1 of 1 camera')
  })

  it('is that of 16:9 where no camera is known', () => {
    expect(sizeForCameras({ most: size('640x640'), stride: 32 }, noCameraShapes)).toEqual({
      size: size('640x384'),
      from: 'the usual 16:9, as no camera has told its shape',
    })
  })
})

describe('a model', () => {
  function input(more: Partial<SizedInput>, config: Partial<ModelConfig> = {}): SizedInput {
    return {
      name: 'm',
      config: { ...emptyModelConfig, ...config },
      metadata: { imgsz: '[640, 640]' },
      tensor: { name: 'images', type: 'float32', shape: ['batch', 3, 'height', 'width'] },
      heightAt: 2,
      ...more,
    }
  }
  const dims = (...of: number[]): Partial<ModelConfig> => ({
    input: [{ name: 'images', data_type: 'TYPE_FP32', dims: of }],
  })
  const shaped = (...shape: (number | string)[]) => ({
    tensor: { name: 'images', type: 'float32' as const, shape },
  })
  const square = { most: size('640x640'), stride: 32 }

  it.each<[string, SizedInput]>([
    ['its file names height and width apart', input({})],
    ['its file does not name them', input(shaped(1, 3, '?', '?'))],
    ['its configuration has -1 for both', input({}, dims(3, -1, -1))],
    ['colours come last', input({ ...shaped('N', 'h', 'w', 3), heightAt: 1 }, dims(-1, -1, 3))],
    [
      'the exporter says so',
      input({ metadata: { imgsz: '[640, 640]', args: "{'dynamic': True, 'nms': False}" } }),
    ],
  ])('leaves its size open where %s', (_, found) => {
    expect(freeSize(found)).toEqual(square)
  })

  it.each<[string, SizedInput]>([
    ['its file has a number', input(shaped('N', 3, 640, 640))],
    ['its file has one number', input(shaped('N', 3, 'height', 640))],
    ['both have one name', input(shaped('N', 3, 'size', 'size'))],
    ['its configuration has numbers', input({}, dims(3, 640, 640))],
    ['its configuration has one number', input({}, dims(3, -1, 640))],
    ['the exporter meant one size', input({ metadata: { imgsz: '[640, 640]', dynamic: 'False' } })],
    [
      'the arguments of the export say so',
      input({ metadata: { imgsz: '[640, 640]', args: "{'batch': 1, 'dynamic': False}" } }),
    ],
    ['nothing tells how large it may be', input({ metadata: {} })],
  ])('has one size where %s', (_, found) => {
    expect(freeSize(found)).toMatchObject({
      fixedBy: expect.stringMatching(/its input|dims|metadata/) as string,
    })
  })

  it.each([
    ['gantry.input_size', 'Write it like "640x640", or "rect" for the shape of the cameras.'],
    ['gantry.crop_size', 'Write it like "640x640".'],
  ] as const)('with a %s that is no size names what it may be', (key, hint) => {
    const config = { ...emptyModelConfig, parameters: { [key]: { string_value: 'Rect' } } }
    expect(() => inputSize(input({}, config), key)).toThrow(expect.objectContaining({ hint }))
  })

  it('says what its sides are multiples of', () => {
    const stride = (text: string) => {
      const found = freeSize(input({ metadata: { imgsz: '[640, 640]', stride: text } }))
      return 'stride' in found ? found.stride : undefined
    }
    expect(stride('64')).toBe(64)
    expect(stride('[8, 16, 32]')).toBe(32)
    expect(stride('tensor([ 8., 16., 64.])')).toBe(64)
    expect(stride('0')).toBe(32)
    expect(stride('none')).toBe(32)
  })
})
