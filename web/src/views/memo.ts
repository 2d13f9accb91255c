import { Component, createElement, type ComponentType, type JSX } from 'preact'

/** The view, rendered again only when one of its properties is another value. Functions are taken to stay the same. */
export function memo<P extends object>(View: ComponentType<P>): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      const before = this.props as Readonly<Record<string, unknown>>
      return Object.entries(next).some(([key, value]) => typeof value !== 'function' && before[key] !== value)
    }

    override render(): JSX.Element {
      return createElement(View, this.props)
    }
  }
}
