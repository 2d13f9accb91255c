import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { plainHost } from '../lifecycle/address-policy.js'

/** A play list is read and written anew on its way to the decoder; anything else passes as it is. */
export type Content = 'list' | 'media'

export type Named = Readonly<{ content: Content; secure: boolean; host: string; port: number }>

/**
 * Host names that a decoder asks its gate for, in place of those of the stream: they say what is wanted and whether it is fetched over
 * TLS. Nobody else knows them, so a decoder can ask for nothing but what its gate has named.
 */
export class GateNames {
  readonly #token = randomBytes(8).toString('hex')

  /** The same URL under its name here, which ends as the host's does: by that ffmpeg knows whom cookies are for. */
  nameOf(content: Content, url: URL): string {
    const host = plainHost(url.hostname)
    const family = isIP(host)
    const marks = `${content === 'list' ? 'l' : 'm'}${url.protocol === 'https:' ? 's' : 'p'}${family}`
    const name = `${marks}${this.#token}.${family === 0 ? host : host.replaceAll(/[.:]/g, '-')}`
    const login = url.username + url.password === '' ? '' : `${url.username}:${url.password}@`
    return `http://${login}${name}:${portOf(url)}${url.pathname}${url.search}`
  }

  /** @returns undefined for what is no name of ours. */
  read(hostname: string, port: string): Named | undefined {
    const [, content, scheme, family, token, host = ''] =
      /^([lm])([sp])([046])([0-9a-f]+)\.(.+)$/.exec(hostname) ?? []
    if (token !== this.#token) return undefined
    return {
      content: content === 'l' ? 'list' : 'media',
      secure: scheme === 's',
      host: family === '0' ? host : host.replaceAll('-', family === '6' ? ':' : '.'),
      port: Number(port) || 80,
    }
  }

  /** A text of the decoder with the names of the stream in place of ours. */
  plain(text: string): string {
    return text.replace(
      /http:\/\/([^\s/@]*@)?([^\s/:@]+):(\d+)/g,
      (all, login = '', name: string, port: string) => {
        const named = this.read(name, port)
        return named === undefined
          ? all
          : `http${named.secure ? 's' : ''}://${login}${hostIn(named)}:${named.port}`
      },
    )
  }
}

/** As a URL spells it. */
export function hostIn({ host }: Named): string {
  return host.includes(':') ? `[${host}]` : host
}

function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80')
}
