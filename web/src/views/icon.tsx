import type { JSX } from 'preact'

/** Paths on a grid of 24, drawn with the colour of the text around them. */
const paths = {
  add: 'M12 5v14M5 12h14',
  close: 'M6 6l12 12M18 6L6 18',
  sun: 'M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4',
  moon: 'M20 14.5A8.5 8.5 0 019.5 4 8.5 8.5 0 1020 14.5z',
  help: 'M9.2 9a2.9 2.9 0 115 2c-1.2.9-2.2 1.5-2.2 3M12 17.5v.1',
  search: 'M11 4a7 7 0 100 14 7 7 0 000-14zM16 16l4.5 4.5',
  power: 'M12 4v8M7.5 6.8a7 7 0 109 0',
  trash: 'M5 7h14M10 7V4.8h4V7M7 7l.8 12.2h8.4L17 7M10.2 10.5v5.5M13.8 10.5v5.5',
  expand: 'M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5',
  left: 'M14.5 5.5L8 12l6.5 6.5',
  right: 'M9.5 5.5L16 12l-6.5 6.5',
  camera: 'M3.5 8.5h11v8h-11zM14.5 11.5l6-3v8l-6-3zM9 16.5V20',
  warning: 'M12 4l9 15.5H3L12 4zM12 10v4.5M12 16.9v.1',
  pause: 'M9 6v12M15 6v12',
  play: 'M8 5.5v13l10.5-6.5z',
  link: 'M9.5 14.5l5-5M8 11l-2 2a3.5 3.5 0 005 5l2-2M16 13l2-2a3.5 3.5 0 00-5-5l-2 2',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9.2a2.8 2.8 0 100 5.6 2.8 2.8 0 000-5.6z',
  'eye-off':
    'M4 4l16 16M6.5 7.5C4 9.3 2.5 12 2.5 12S6 18.5 12 18.5c1.7 0 3.2-.5 4.5-1.3M10 5.7c.6-.1 1.3-.2 2-.2 6 0 9.5 6.5 9.5 6.5s-.8 1.500-2.300 3.100',
  copy: 'M9 9h10v11H9zM15 9V5H5v11h4',
  save: 'M12 4v10M7.5 10l4.5 4.5 4.5-4.5M5 19.5h14',
  check: 'M5 12.5l4.5 4.5L19 7.5',
  model: 'M12 3.5l7.5 4.2v8.6L12 20.5l-7.5-4.2V7.7zM4.5 7.7L12 12l7.5-4.3M12 12v8.5',
} as const
export type IconName = keyof typeof paths

export function Icon({ name }: Readonly<{ name: IconName }>): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}
