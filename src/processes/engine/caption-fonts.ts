import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Lets the fonts of captions be listed in `folder`. By itself the library that finds them keeps its list where the user, or for root the
 * system, has such things. To be called before the first caption is drawn. Whoever set `FONTCONFIG_FILE` has decided himself.
 */
export function keepFontListIn(folder: string): void {
  const file = join(folder, 'fonts.conf')
  writeFileSync(
    file,
    `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>/usr/local/share/fonts</dir>
  <include ignore_missing="yes">/etc/fonts/conf.d</include>
  <cachedir>${folder}</cachedir>
</fontconfig>
`,
  )
  process.env['FONTCONFIG_FILE'] ||= file
}
