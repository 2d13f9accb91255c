/** Stands for the picture step of `preprocess_inception_ensemble`: a tensor made of the bytes of each picture, of the right shape. */
export default function create() {
  return {
    execute({ inputs: { INPUT }, batchSize }) {
      const size = 3 * 224 * 224
      const data = new Float32Array(batchSize * size)
      for (const [at, picture] of INPUT.data.entries())
        for (let i = 0; i < size; i++) data[at * size + i] = picture[i % picture.length] / 255
      return { OUTPUT: { shape: [batchSize, 3, 224, 224], data } }
    },
  }
}
