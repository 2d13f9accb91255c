/** What the probe is told, as JSON in its only argument. */
export type ProbeTask = Readonly<{
  modelPath: string
  /** Shapes to run the model with, where the configuration tells them; sizes that may vary are 1. */
  shapes: Readonly<Record<string, readonly number[]>>
}>

/** What it says, as one line of JSON on stdout. A model that refuses zeros may still be good; one that cannot be loaded is not. */
export type ProbeAnswer =
  Readonly<{ loaded: true; runError: string | undefined }> | Readonly<{ loaded: false; error: string }>
