import { Counter, Gauge, type Registry } from 'prom-client'

/** Metrics of TLS on the ports of the service; where it is not set there are none. */
export type TlsMetrics = ReturnType<typeof createTlsMetrics>

export function createTlsMetrics(registry: Registry) {
  const registers = [registry]
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Gauge({ name, help, labelNames, registers })
  return {
    expiry: gauge(
      'gantry_tls_certificate_expiry_timestamp_seconds',
      'Unix time at which the first certificate of the file of server.tls in use ends.',
      ['file'],
    ),
    doorUp: gauge('gantry_tls_door_up', '1 while the process that ends TLS takes connections.'),
    doorRestarts: counter('gantry_tls_door_restarts_total', 'Restarts of the process that ends TLS.'),
    doorRss: gauge('gantry_tls_door_resident_memory_bytes', 'Resident memory of the process that ends TLS.'),
    doorCpu: counter('gantry_tls_door_cpu_seconds_total', 'CPU time of the process that ends TLS.'),
    doorLoopP99: gauge(
      'gantry_tls_door_eventloop_p99_seconds',
      'p99 delay of the loop of the process that ends TLS, last second.',
    ),
    connections: gauge(
      'gantry_tls_connections',
      'Open connections of clients by TLS, those of gRPC left out.',
    ),
    accepted: counter(
      'gantry_tls_connections_total',
      'Connections whose handshake was good, those of gRPC left out.',
    ),
    refused: counter(
      'gantry_tls_refused_connections_total',
      'Connections that were not let in, those of gRPC left out: plain (not TLS), timeout, no_certificate, untrusted, handshake, full.',
      ['cause'],
    ),
  }
}
