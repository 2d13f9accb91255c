/**
 * The only file that imports the package, and itself imported where a picture is to be decoded or made: its library takes 20 MB, and most
 * processes never see a picture. One picture takes one thread, and nothing of it is kept.
 */
import sharp from 'sharp'

sharp.concurrency(1)
sharp.cache(false)

export default sharp
