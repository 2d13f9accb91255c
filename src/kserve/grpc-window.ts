/**
 * So much may be sent on a connection, and on a stream of it, before the sender waits for leave to send more. HTTP/2 begins with 64 KiB, of
 * which a small picture takes three: each would wait for the way there and back.
 */
export const grpcWindowBytes = 1024 ** 2
