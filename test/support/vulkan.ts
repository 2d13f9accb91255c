import { existsSync } from 'node:fs'

/** A Vulkan driver in software, which comes with Debian's chromium. */
export const swiftShader = '/usr/lib/chromium/vk_swiftshader_icd.json'

/** Whether it and the loader are there. */
export const vulkanPresent =
  existsSync(swiftShader) &&
  ['/usr/lib/x86_64-linux-gnu/libvulkan.so.1', '/usr/lib/aarch64-linux-gnu/libvulkan.so.1'].some((path) =>
    existsSync(path),
  )
