/**
 * The shape on the other side of a `reshape`: sizes that are -1 in both keep their value, in order.
 *
 * @param shape - with the batch dimension first if `batched`, which stays.
 * @param from - dims that `shape` has.
 * @param to - dims that are wanted.
 */
export function reshaped(
  shape: readonly number[],
  from: readonly number[],
  to: readonly number[],
  batched: boolean,
): readonly number[] {
  const items = batched ? shape.slice(1) : shape
  const free = items.filter((_, index) => from[index] === -1)
  let next = 0
  const inner = to.map((size) => (size === -1 ? (free[next++] ?? 1) : size))
  return batched ? [shape[0] ?? 1, ...inner] : inner
}
