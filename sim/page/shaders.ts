/**
 * Between the passes light is kept as `sqrt(light / 4)` in a byte: a quarter of the memory traffic of half floats,
 * which is what a software GPU spends its time on.
 */
export const storeLight = 'gl_FragColor = vec4(sqrt(max(gl_FragColor.rgb, vec3(0.0)) * 0.25), 1.0);'

/** Background into the frame's target, with moving shadows; writes the depth of what stands still. */
export const blitShader = `
in vec2 spot; out vec4 color;
uniform sampler2D lit; uniform sampler2D shade; uniform sampler2D depth; uniform sampler2D mask; uniform vec2 maskTexel;
void main() {
  vec4 dark = texture(shade, spot);
  vec3 light = texture(lit, spot).rgb;
  if (dark.a > 0.5) {
    vec2 m = texture(mask, spot).rg * 2.0;
    m += texture(mask, spot + maskTexel * vec2(1.3, 0.5)).rg + texture(mask, spot + maskTexel * vec2(-1.3, -0.5)).rg;
    m += texture(mask, spot + maskTexel * vec2(0.5, -1.1)).rg + texture(mask, spot + maskTexel * vec2(-0.5, 1.1)).rg;
    m /= 6.0;
    light = mix(light, dark.rgb, m.r) * (1.0 - 0.55 * m.g);
  }
  color = vec4(sqrt(light * 0.25), 1.0);
  gl_FragDepth = texture(depth, spot).r;
}`

/** From light to the bytes of a camera: tone, lens, weather, sensor and faults. Row 0 of the output is the top. */
export const cameraShader = `
in vec2 spot; out vec4 color;
uniform sampler2D source; uniform sampler2D grain; uniform vec2 sizePx; uniform float frame; uniform float exposure; uniform float noise; uniform float rain;
uniform float blurPx; uniform float cover; uniform float gain;

float hash(vec3 p) {
  p = fract(p * vec3(0.1031, 0.1030, 0.0973));
  p += dot(p, p.yxz + 33.33);
  return fract((p.x + p.y) * p.z);
}
vec3 stored(vec2 at) {
  vec3 root = texture(source, at).rgb;
  return 4.0 * root * root;
}
vec3 tone(vec3 x) {
  return clamp((x * (2.51 * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14), 0.0, 1.0);
}
float soft(vec2 p) {
  vec2 i = floor(p), f = fract(p); f = f * f * (3.0 - 2.0 * f);
  float a = hash(vec3(i, 1.0)), b = hash(vec3(i + vec2(1, 0), 1.0)), c = hash(vec3(i + vec2(0, 1), 1.0)), d = hash(vec3(i + vec2(1, 1), 1.0));
  return mix(mix(a, b, f.x), mix(c, d, f.x), f.y);
}
float streak(vec2 px, float layer) {
  float lean = px.x + px.y * 0.09;
  float width = 4.0 + layer * 3.0;
  float column = floor(lean / width);
  float start = hash(vec3(column, layer, floor(frame * 0.5)));
  float y = fract(px.y / (260.0 + 90.0 * layer) + start * 7.0 + frame * 0.37);
  float present = step(0.955, hash(vec3(column, layer + 9.0, floor(px.y / (260.0 + 90.0 * layer) + start * 7.0 + frame * 0.37))));
  float across = 1.0 - abs(fract(lean / width) - 0.5) * 2.0;
  return present * smoothstep(0.0, 0.1, y) * smoothstep(0.42, 0.2, y) * across * across;
}
void main() {
  vec2 at = vec2(spot.x, 1.0 - spot.y);
  vec3 light;
  if (blurPx > 0.0) {
    light = vec3(0.0);
    for (int i = 0; i < 28; i++) {
      float r = sqrt((float(i) + 0.5) / 28.0) * blurPx;
      float a = float(i) * 2.39996;
      light += stored(at + vec2(cos(a), sin(a)) * r / sizePx);
    }
    light /= 28.0;
  } else {
    // Two taps across the diagonal smooth the edges of what moves, for less than half the cost of multisampling.
    vec2 t = 0.33 / sizePx;
    light = 0.5 * (stored(at + t) + stored(at - t));
  }
  if (rain > 0.0) {
    vec2 px = gl_FragCoord.xy * (1280.0 / sizePx.x);
    float s = streak(px, 1.0) + 0.7 * streak(px * 0.6 + 77.0, 2.0);
    light = mix(light, vec3(dot(light, vec3(0.33))) * 0.75 + 0.12, 0.16 * rain) + s * 0.17 * rain * (0.25 + dot(light, vec3(0.33)));
  }
  vec2 off = spot - 0.5;
  light *= exposure * gain * (1.0 - 0.55 * dot(off, off));
  vec3 picture = pow(tone(light), vec3(1.0 / 2.2));
  if (cover > 0.0) {
    float edge = cover * 1.5 - 0.25 - (spot.x * 0.8 + spot.y * 0.2) + 0.08 * soft(spot * 5.0);
    float over = smoothstep(0.0, 0.16, edge);
    vec3 cloth = vec3(0.05, 0.045, 0.04) * (0.6 + 0.8 * soft(spot * vec2(9.0, 14.0)));
    picture = mix(picture, cloth, over);
  }
  ivec2 shift = ivec2(hash(vec3(frame, 1.0, 7.0)) * 256.0, hash(vec3(frame, 5.0, 3.0)) * 256.0);
  vec4 speck = texelFetch(grain, (ivec2(gl_FragCoord.xy) + shift) & 255, 0) - 0.5;
  color = vec4(picture + speck.a * noise * 3.0 + speck.rgb * noise, 1.0);
}`
