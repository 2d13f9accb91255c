import { defineConfig } from 'vitest/config'

/** Several brokers or nodes, whose time limits are those of the product: beside others on a small machine they take each other for dead. */
const alone = ['test/delivery/kafka/kafka-leaders.test.ts', 'test/e2e/cluster*.test.ts']

const each = {
  setupFiles: ['test/support/node-warnings.ts'],
  testTimeout: 30_000,
  hookTimeout: 60_000,
  pool: 'forks' as const,
}

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    projects: [
      {
        test: {
          ...each,
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: ['test/bench/**', ...alone],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: { ...each, name: 'alone', include: alone, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
