/** Linear-free sRGB hex colours by name, so that a scenario reads as words. */
const skins = { light: 0xe8b896, tan: 0xc98f66, brown: 0x8d5a3b, dark: 0x54352a } as const
const cloths = {
  navy: 0x25304d,
  blue: 0x3a5f95,
  grey: 0x6d7176,
  charcoal: 0x33363b,
  khaki: 0x83785a,
  olive: 0x4f5738,
  red: 0x9e2f2b,
  green: 0x2f6b45,
  white: 0xd8d8d2,
  black: 0x1d1d20,
  brown: 0x5b4230,
  teal: 0x2a6f78,
  yellow: 0xe0b21c,
  orange: 0xd9662b,
} as const
const hairs = { black: 0x17130f, brown: 0x3c2819, blond: 0xa58350, grey: 0x8b8984, red: 0x71351b } as const
const helmets = {
  yellow: 0xf2c312,
  white: 0xefefea,
  orange: 0xee6a1c,
  red: 0xc9281f,
  blue: 0x1f5fb0,
  green: 0x1f8a4a,
  black: 0x222326,
  grey: 0x8b8f94,
  navy: 0x202b4a,
} as const

type Key<T> = Extract<keyof T, string>
const keys = <T extends object>(table: T): [Key<T>, ...Key<T>[]] =>
  Object.keys(table) as [Key<T>, ...Key<T>[]]

export const skinTones = keys(skins)
export const clothColors = keys(cloths)
export const hairColors = keys(hairs)
export const helmetColors = keys(helmets)

export type ClothColor = keyof typeof cloths

/** sRGB as 0xRRGGBB. */
export const palette = { skin: skins, cloth: cloths, hair: hairs, helmet: helmets } as const
