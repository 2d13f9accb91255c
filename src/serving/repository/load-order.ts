/** Models in an order in which each comes after those it needs, and those that cannot have a place in it. */
export type LoadOrder = Readonly<{
  order: readonly string[]
  /** Name -> the circle it is part of or waits for, `a -> b -> a`. */
  circular: ReadonlyMap<string, string>
}>

/**
 * Puts models into loading order.
 *
 * @param needs - name to the names of the models it runs; names outside of the map are left out.
 */
export function loadOrder(needs: ReadonlyMap<string, readonly string[]>): LoadOrder {
  const order: string[] = []
  const circular = new Map<string, string>()
  const done = new Set<string>()
  const visit = (name: string, path: readonly string[]): void => {
    const at = path.indexOf(name)
    if (at >= 0) {
      const circle = [...path.slice(at), name].join(' -> ')
      for (const member of path) circular.set(member, circular.get(member) ?? circle)
      return
    }
    if (done.has(name) || !needs.has(name)) return
    for (const need of needs.get(name) ?? []) visit(need, [...path, name])
    if (done.has(name)) return
    done.add(name)
    order.push(name)
  }
  for (const name of needs.keys()) visit(name, [])
  return { order: order.filter((name) => !circular.has(name)), circular }
}
