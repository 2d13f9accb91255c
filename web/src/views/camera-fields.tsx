import type { JSX } from 'preact'
import { CheckField, SelectField, TextField, type FormState } from './fields.js'
import { RegionPicker } from './region-picker.js'

type BasicsProps = Readonly<{ state: FormState; editing?: boolean; hasLogin?: boolean }>

/** What every camera has. @param editing - it is there: its id stays, and so does a login that is left empty. */
export function CameraBasics({ state, editing = false, hasLogin = false }: BasicsProps): JSX.Element {
  const stays = hasLogin ? 'Set, and not shown. Left empty it stays as it is.' : undefined
  return (
    <>
      <TextField
        state={state}
        name="url"
        label="URL"
        placeholder="rtsp://192.0.2.10:554/stream1"
        help="RTSP camera, HTTP or HLS stream, video file or folder of pictures; push: for a camera that sends its pictures."
        autofocus={!editing}
      />
      <div class="columns">
        <TextField
          state={state}
          name="username"
          label="User name"
          help={stays ?? 'Of the camera, where it asks for a login.'}
        />
        <TextField
          state={state}
          name="password"
          label="Password"
          help={stays ?? 'As it is, whatever its characters. Never shown again.'}
          hidden
        />
      </div>
      <div class="columns">
        {!editing && (
          <TextField
            state={state}
            name="id"
            label="Id"
            placeholder="dock-1"
            help="Letters, digits, . _ - and at most 64 of them."
          />
        )}
        <TextField
          state={state}
          name="name"
          label="Name"
          placeholder="Dock, north side"
          help="For people; may be left empty."
        />
      </div>
      <div class="columns">
        <TextField
          state={state}
          name="sampleFps"
          label="Frames per second"
          help="Analysed at most."
          inputMode="decimal"
        />
        <SelectField
          state={state}
          name="transport"
          label="Transport"
          help="TCP unless the network asks for UDP."
          options={[
            ['tcp', 'TCP'],
            ['udp', 'UDP'],
          ]}
        />
      </div>
      <CheckField state={state} name="persist" label="Keep this camera over a restart of the service" />
    </>
  )
}

type AdvancedProps = Readonly<{ state: FormState; picture: string | undefined }>

/** What most cameras are fine without. @param picture - of the camera, to draw the region in. */
export function CameraAdvanced({ state, picture }: AdvancedProps): JSX.Element {
  return (
    <>
      <TextField
        state={state}
        name="analyseUrl"
        label="Sub-stream"
        placeholder="rtsp://192.0.2.10:554/stream2"
        help="Analysed in place of the stream above, which is opened for snapshots alone then."
      />
      <div class="columns">
        <SelectField
          state={state}
          name="decode"
          label="Decoded"
          help="Key frames alone where they come often enough."
          options={[
            ['full', 'every picture'],
            ['fast', 'every picture, filtered where needed'],
            ['keyframes', 'key frames alone'],
            ['auto', 'as the stream allows'],
          ]}
        />
        <SelectField
          state={state}
          name="hwaccel"
          label="Hardware decoding"
          help="Falls back to software."
          options={[
            ['none', 'none'],
            ['auto', 'auto'],
            ['vaapi', 'VAAPI'],
            ['cuda', 'CUDA'],
          ]}
        />
        <TextField
          state={state}
          name="maxWidthPx"
          label="Widest picture, px"
          placeholder="as sent"
          help="Wider ones are scaled down."
          inputMode="numeric"
        />
        <TextField
          state={state}
          name="displayAspectRatio"
          label="Shape of the picture"
          placeholder="as the stream says"
          help="Such as 16:9, for recorders that do not say it."
        />
        <TextField
          state={state}
          name="sampleAspectRatio"
          label="Shape of a pixel"
          placeholder="as the stream says"
          help="The same said of a pixel, such as 2:1."
        />
        <TextField
          state={state}
          name="stallTimeoutMs"
          label="Silence before restart, ms"
          placeholder="5000"
          help="500 to 600000."
          inputMode="numeric"
        />
      </div>
      <fieldset class="region">
        <legend>Region of interest, as fractions of the picture (empty: all of it)</legend>
        <RegionPicker state={state} picture={picture} />
        <div class="columns four">
          <TextField state={state} name="region.x" label="Left" placeholder="0" inputMode="decimal" />
          <TextField state={state} name="region.y" label="Top" placeholder="0" inputMode="decimal" />
          <TextField state={state} name="region.width" label="Width" placeholder="1" inputMode="decimal" />
          <TextField state={state} name="region.height" label="Height" placeholder="1" inputMode="decimal" />
        </div>
      </fieldset>
      <CheckField state={state} name="loop" label="Begin a file or folder anew at its end" />
      <CheckField state={state} name="enabled" label="Switched on" />
    </>
  )
}
