import { preact } from '@preact/preset-vite'
import { defineConfig } from 'vite'

/** The page as the server gives it out: nothing inlined, so that the strict content security policy holds. */
export default defineConfig({
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
    proxy: { '/api': { target: 'http://127.0.0.1:8000', ws: true, changeOrigin: true } },
  },
})
