import { preact } from '@preact/preset-vite'
import { defineConfig } from 'vite'

const service = 'http://127.0.0.1:8000'

/** The page as the server gives it out: nothing inlined, so that the strict content security policy holds. */
export default defineConfig({
  // Relative: a reverse proxy may give the page out under a path.
  base: './',
  plugins: [preact({ devToolsEnabled: false, prefreshEnabled: false })],
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2022',
    // light-dark() as it is: rewritten, a dark picture on a light page would take the light colours.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    // `vite web` beside a running service: requests look as if the service's own page had sent them.
    proxy: {
      '/api': {
        target: service,
        ws: true,
        changeOrigin: true,
        rewriteWsOrigin: true,
        headers: { origin: service },
      },
    },
  },
})
