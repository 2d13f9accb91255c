export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** Nothing that is read here is so deep. */
const mostDepth = 100

/**
 * `JSON.parse` for text in which no object may have a name twice: it would keep the last one in silence.
 *
 * @throws Error in words, naming the path and both values
 */
export function parseUniqueJson(text: string): Json {
  JSON.parse(text)
  return new Reader(text).value([])
}

/** Reads text that is known to be JSON. */
class Reader {
  readonly #tokens: Iterator<RegExpExecArray>

  constructor(text: string) {
    this.#tokens = text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)
  }

  value(path: readonly string[], token = this.#next()): Json {
    if (path.length > mostDepth) throw new Error(`it is more than ${mostDepth} levels deep`)
    if (token === '{') return this.#object(path)
    return token === '[' ? this.#list(path) : (JSON.parse(token) as Json)
  }

  #next(): string {
    return (this.#tokens.next() as IteratorYieldResult<RegExpExecArray>).value[0]
  }

  #list(path: readonly string[]): Json {
    const list: Json[] = []
    for (let token = this.#next(); token !== ']'; token = this.#next())
      if (token !== ',') list.push(this.value([...path, String(list.length)], token))
    return list
  }

  #object(path: readonly string[]): Json {
    const members = new Map<string, Json>()
    for (let token = this.#next(); token !== '}'; token = this.#next()) {
      if (token === ',') continue
      const name = JSON.parse(token) as string
      const at = [...path, name]
      this.#next()
      const value = this.value(at)
      if (members.has(name))
        throw new Error(
          `${at.join('.')} is given twice, with ${JSON.stringify(members.get(name))} and ${JSON.stringify(value)}`,
        )
      members.set(name, value)
    }
    return Object.fromEntries(members)
  }
}
