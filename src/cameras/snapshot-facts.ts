/** What is told of a snapshot beside its bytes. */
export type SnapshotFacts = Readonly<{
  /** `own`: at the camera's own resolution; `analysed`: at the size that the model saw. */
  picture: 'own' | 'analysed'
  widthPx: number
  heightPx: number
  /** Wall time. */
  capturedAtMs: number
}>
