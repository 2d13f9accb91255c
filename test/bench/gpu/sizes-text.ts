type Size = Readonly<{ size: number; ms: number; memoryBytes?: number | undefined }>

/** What sizes of batches take, in a cell of a table. */
export function sizesText(sizes: readonly Size[]): string {
  return sizes
    .map(({ size, ms, memoryBytes }) => {
      const memory = memoryBytes === undefined ? '' : `, ${Math.round(memoryBytes / 2 ** 20)} MiB`
      return `${size}: ${ms.toFixed(1)} ms${memory}`
    })
    .join('; ')
}
