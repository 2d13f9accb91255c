/** What the probe is told, as JSON in its only argument. */
export type ProbeTask = Readonly<{
  modelPath: string
  /** Shapes to run the model with, where the configuration tells them; sizes that may vary are 1. */
  shapes: Readonly<Record<string, readonly number[]>>
}>

/** Its first line on stdout: from here on, what becomes of the process is the model's doing. */
export const begun = 'begun'

/** What it says then, as one line of JSON. A model that refuses zeros may still be good; one that cannot be loaded is not. */
export type ProbeAnswer =
  Readonly<{ loaded: true; runError: string | undefined }> | Readonly<{ loaded: false; error: string }>
