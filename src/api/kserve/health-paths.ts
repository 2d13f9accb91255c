/** What tells anyone whether the server lives, and whether it is ready. */
export const healthPaths = ['/v2/health/live', '/v2/health/ready'] as const
