/** Packets of a network stream. */
const losses = /RTP: missed \d+ packets|bad cseq|max delay reached|^nal size exceeds length/

/**
 * What ffmpeg 5.1 and 9 say of pictures that are damaged, or of data for them that is missing: the text behind the level of a line.
 * What is not here is no damage, however much like it it sounds: cameras send SEI that nobody understands, access units without a picture,
 * and reorder more than they announce, all with sound pictures. Found by damaging streams of each codec (test/sources/damaged-files.test.ts).
 */
const damages = [
  // Told by ffmpeg of what a decoder gave, or did not take.
  /corrupt decoded frame( in stream \d+)?\.?$/,
  /^Error while decoding stream #\d+:\d+: Invalid data/,
  /^Error submitting packet to decoder: Invalid data/,
  // Packets that were lost on the way, or are incomplete.
  losses,
  /^Packet corrupt \(|corrupt input packet in stream \d+\.?$/,
  /^(Element at 0x\w+ ending at|Unknown-sized element at|Length \d+ indicated by an EBML number|0x\w+ at pos \d+ .* invalid as first byte)/,
  // H.264 and H.265: a NAL unit, a slice or a block that cannot be decoded, and references that are missing.
  /^Invalid NAL unit size|^Error splitting the input into NAL units/,
  /^error while decoding MB|^concealing \d+ DC, \d+ AC, \d+ MV errors/,
  /^decode_slice_header error|^Frame num change from|^(first_mb_in_slice|reference count|abs_diff_pic_num) overflow/,
  /^(illegal modification_of_pic_nums_idc|mismatching reference|idr_pic_id is invalid|slice type \d+ too large)/,
  /^(cabac_init_idc|QP|deblocking_filter_idc) \d+ (overflow|out of range)|^deblocking filter parameters/,
  /^A non-intra slice in an IDR|^Invalid mix of IDR and non-IDR|^Invalid field mode combination/,
  /^non-existing (PPS|SPS) \d+ referenced$|^(PPS|SPS) (id out of range|\d+ does not exist)/,
  /^reference picture missing during reorder|^Missing reference picture|^co located POCs unavailable/,
  /^Reference not available for error concealing/,
  /^Could not find ref with POC|^Error constructing the (frame RPS|reference lists)/,
  /^Error parsing NAL unit #/,
  // Slices alone: the type of the unit is below 32.
  /^Skipping invalid undecodable NALU: ([12]?\d|3[01])$/,
  /^(First slice in a frame|Independent slice segment|Previous slice segment) missing/,
  /^CABAC_MAX_BIN|^The (cu_qp_delta|slice_qp) -?\d+ is outside|^entry_point_offset table is corrupted/,
  /^Invalid slice segment address|^Overread slice header/,
  // JPEG. That nothing marks its end is usual, that data ends before the picture does is not.
  /^overread \d+|^error (dc|y=|count:)|^mjpeg_decode_dc: bad vlc|^bitstream end in (yuv|rgb)_scan/,
  /^huffman table decode error|^dqt: len \d+ is too large|^dht: len \d+ is too large|^decode_sos: /,
  // MPEG-1, 2 and 4, H.263.
  /^Error at MB: |^ac-tex damaged|^slice mismatch|^slice end not reached|^marker does not match f_code/,
  /^(illegal|invalid|Invalid) (mb|MB|dc|ac|cbp)[ _]|^mb incr damaged|^end mismatch left/,
  // VP8, VP9, AV1.
  /^Header size larger than data provided|^Invalid frame marker|^(Discarding interframe|Keyframe missing)/,
  /^Requested reference \d+ not available|^Not all references are available/,
  /^Failed to (parse temporal unit|read frame header)|^Frame \d+ too large in superframe/,
  /^Error parsing (OBU data|frame header)|^Invalid OBU length|^Unknown OBU type/,
] as const

/** Of those, what every decoder says that begins between two key frames: what it is given refers to what it never had. */
const joining = [
  /^Error (while decoding stream|submitting packet to decoder)/,
  /^decode_slice_header error|^non-existing (PPS|SPS)|^(PPS|SPS) (id out of range|\d+ does not exist)/,
  /^reference picture missing|^Missing reference picture|^co located POCs unavailable/,
  /^Could not find ref with POC|^Error constructing the|^Error parsing NAL unit #|^Skipping invalid undecodable NALU/,
  /^(First slice in a frame|Independent slice segment|Previous slice segment) missing/,
  /^(Discarding interframe|Keyframe missing)|^Requested reference|^Not all references/,
  /^Error parsing (OBU data|frame header)|^Failed to (parse temporal unit|read frame header)/,
] as const

const holds = (patterns: readonly RegExp[], text: string) => patterns.some((pattern) => pattern.test(text))

export function isDamage(text: string): boolean {
  return holds(damages, text)
}

export function isLoss(text: string): boolean {
  return losses.test(text)
}

/** Whether a complaint may be of nothing but a late beginning. */
export function isOfJoining(text: string): boolean {
  return holds(joining, text)
}

/** ffmpeg says so of each packet that a decoder refuses, whatever the decoder itself has said. */
export function isRefusedPacket(text: string): boolean {
  return /^Error (while decoding stream|submitting packet to decoder)/.test(text)
}

/** A packet had no picture in it, as of cameras that send SEI or a delimiter by itself; it is refused as well, and nothing is missing. */
export function isEmptyPacket(text: string): boolean {
  return text === 'no frame!'
}
