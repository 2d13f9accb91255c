/** Stands for the classifier of `preprocess_inception_ensemble`: a score for each class, by the picture. */
export default function create() {
  return {
    execute({ inputs: { INPUT }, batchSize }) {
      const each = INPUT.data.length / batchSize
      const data = Float32Array.from(
        { length: batchSize * 1000 },
        (_, i) => INPUT.data[Math.floor(i / 1000) * each + (i % 1000)],
      )
      return { OUTPUT: { shape: [batchSize, 1000], data } }
    },
  }
}
