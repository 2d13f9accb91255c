/** The ports that are taken; equal where metrics are on that of HTTP. */
export type TakenPorts = Readonly<{ httpPort: number; metricsPort: number }>

/** What takes the connections of clients in our place and ends their TLS. */
export interface TlsFront {
  /** Unix sockets that only this user can reach, where it brings them: each begins with a header of who it is from. */
  readonly paths: Readonly<{ http: string; metrics: string }>
  /** Takes the ports. To be called once the Unix sockets are listened to. @throws GantryError where it cannot */
  open(): Promise<TakenPorts>
  /** Takes no more connections, and ends those there are. Idempotent, never rejects. */
  stop(): Promise<void>
}
