import type { PictureTrouble } from '../../src/vision/coverage.js'

/** What may be told of a second; null: that it is watched. More than one where people would take either. */
export type ExpectedCauses = readonly (PictureTrouble | null)[]

export type CoverageFault = Readonly<{
  expected: ExpectedCauses
  /** What ffmpeg makes of the picture. */
  filter: string
  /** What else may be told of a camera that is swung all the time, and has no scene. */
  swung?: ExpectedCauses
  /** The last sound picture stays. */
  holds?: true
}>

const sound = [null]

/** Those that the checks were made with. */
const known: Readonly<Record<string, CoverageFault>> = {
  none: { expected: sound, filter: 'null' },
  noise: { expected: sound, filter: 'noise=alls=25:allf=t' },
  'half the light': { expected: sound, filter: 'eq=contrast=0.6:brightness=-0.15' },
  flicker: { expected: sound, filter: `eq=brightness='0.08*sin(t*40)':eval=frame` },
  'third covered': { expected: sound, filter: 'drawbox=w=iw/3:t=fill:color=0x404040' },
  cloth: {
    expected: ['covered'],
    filter: 'gblur=sigma=60,lutrgb=r=val/3+40:g=val/3+30:b=val/3+20,drawbox=t=fill:color=0x504030@0.9',
  },
  grey: { expected: ['covered'], filter: 'drawbox=t=fill:color=0x707070,noise=alls=8:allf=t' },
  black: { expected: ['dark'], filter: 'drawbox=t=fill:color=black' },
  'most covered': {
    expected: ['covered'],
    swung: [null],
    filter: 'drawbox=w=iw*0.85:t=fill:color=0x303030,noise=alls=4:allf=t',
  },
  'no light': { expected: ['dark'], filter: 'eq=brightness=-0.6' },
  'little light': { expected: ['dark'], filter: 'lutrgb=r=val/12:g=val/12:b=val/12,noise=alls=6:allf=t' },
  'soft blur': { expected: ['blurred'], swung: [null], filter: 'gblur=sigma=3' },
  blur: { expected: ['blurred'], swung: [null], filter: 'gblur=sigma=6' },
  'strong blur': { expected: ['blurred'], swung: [null], filter: 'gblur=sigma=14' },
  pushed: {
    expected: ['moved'],
    swung: [null],
    filter: 'crop=iw*0.85:ih*0.85:iw*0.15:ih*0.15,scale=iw/0.85:ih/0.85',
  },
  turned: { expected: ['moved'], swung: [null], filter: 'rotate=20*PI/180' },
  elsewhere: { expected: ['moved'], swung: [null], filter: 'hflip,vflip' },
  'infrared at night': { expected: sound, filter: 'hue=s=0,eq=contrast=1.2' },
  'a third of the light': { expected: sound, filter: 'lutrgb=r=val/3:g=val/3:b=val/3,noise=alls=4:allf=t' },
  'more light': { expected: sound, filter: 'lutrgb=r=val*1.5:g=val*1.5:b=val*1.5' },
  shaken: {
    expected: sound,
    filter: `crop=iw-12:ih-12:'6+6*sin(n*2)':'6+6*cos(n*3)',scale=iw+12:ih+12`,
  },
  'a truck passes': {
    expected: sound,
    filter: `drawbox=x='mod(t*160\\,900)-300':w=300:h=ih*0.7:y=ih*0.3:t=fill:color=0x606870`,
  },
  'a cap without light': { expected: ['dark'], filter: 'drawbox=t=fill:color=black,noise=alls=5:allf=t' },
  gloom: { expected: ['dark', null], filter: 'eq=brightness=-0.4' },
  'deep gloom': { expected: ['dark', null], filter: 'eq=brightness=-0.5' },
  'light goes out': { expected: ['dark'], filter: 'lutrgb=r=val/20:g=val/20:b=val/20' },
  paper: {
    expected: ['covered'],
    filter: 'drawbox=t=fill:color=0xd8d4c8@0.97,vignette=PI/6,noise=alls=4:allf=t',
  },
  hand: {
    expected: ['covered'],
    filter: 'gblur=sigma=80,drawbox=t=fill:color=0x8a5a44@0.85,vignette=PI/4,noise=alls=5:allf=t',
  },
  'dark cloth': {
    expected: ['covered'],
    swung: ['dark'],
    filter:
      'gblur=sigma=80,lutrgb=r=6+val/40:g=6+val/40:b=5+val/40,drawbox=x=0:y=0:w=iw/3:h=ih:t=fill:color=0x1a1816,gblur=sigma=40,noise=alls=3:allf=t',
  },
  'paint over most': {
    expected: ['covered'],
    swung: [null],
    filter: 'drawbox=h=ih*0.75:t=fill:color=0x8a2020,noise=alls=4:allf=t',
  },
  'a moonless night': { expected: ['dark'], filter: 'eq=brightness=-0.7:contrast=0.8' },
  foil: { expected: ['covered'], filter: 'drawbox=t=fill:color=0x9aa0a8@0.95,noise=alls=12:allf=t' },
  'out of focus': { expected: ['blurred'], swung: [null], filter: 'avgblur=sizeX=7' },
  'far out of focus': { expected: ['blurred'], swung: [null], filter: 'boxblur=luma_radius=12:luma_power=2' },
  panned: { expected: ['moved'], swung: [null], filter: 'scroll=hpos=0.3' },
  'looks up': { expected: ['moved'], swung: [null], filter: 'scroll=vpos=0.35' },
  'zoomed in': { expected: ['moved'], swung: [null], filter: 'crop=iw/2:ih/2,scale=iw*2:ih*2' },
  hangs: { expected: ['moved'], swung: [null], filter: 'rotate=-12*PI/180:fillcolor=0x505050' },
  mirrored: { expected: ['moved'], swung: [null], filter: 'hflip' },
  'frozen picture': { expected: ['frozen_picture'], filter: 'null', holds: true },
}

/** Those that they were scored with when they were made: nothing was changed for them. */
const unseen: Readonly<Record<string, CoverageFault>> = {
  'dusk falls': { expected: sound, filter: `eq=brightness='-0.12*min(1,max(0,t-25)/18)':eval=frame` },
  'low sun': { expected: sound, filter: 'eq=gamma=2' },
  'somebody stands close': {
    expected: sound,
    filter: 'drawbox=x=iw*0.3:y=ih*0.1:w=iw*0.4:h=ih*0.9:t=fill:color=0x303848',
  },
  'few bits': { expected: [null, 'blurred'], filter: 'scale=iw/4:ih/4,scale=iw*4:ih*4:flags=neighbor' },
  'black sack': {
    expected: ['dark', 'covered'],
    filter: 'drawbox=t=fill:color=0x0c0c0e@0.96,noise=alls=4:allf=t',
  },
  smeared: { expected: ['blurred'], swung: [null], filter: 'gblur=sigma=10:sigmaV=2' },
  'falls over': { expected: ['moved'], swung: [null], filter: 'rotate=PI/2' },
  'upside down': { expected: ['moved'], swung: [null], filter: 'vflip' },
  'pushed hard': { expected: ['moved'], swung: [null], filter: 'scroll=hpos=0.15:vpos=0.12' },
}

export const coverageFaults: Readonly<Record<string, CoverageFault>> = { ...known, ...unseen }
export const unseenFaults: ReadonlySet<string> = new Set(Object.keys(unseen))
