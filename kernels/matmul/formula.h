const Formulas<shapes::Matmul, shapes::WidenedMatmul> matmul([](const ReferenceCall& c,
                                                                auto f) -> ReferenceResults {
  const Numbers a = c[f.a], b = c[f.b];
  const bool batched = c.type(f.a).rank == 3;
  const std::int64_t batch = batched ? c.dim(f.a, 0) : 1;
  const int first = batched ? 1 : 0;
  const std::int64_t rows = c.dim(f.c, first), columns = c.dim(f.c, first + 1);
  const bool ta = c.attribute("transpose_a") != 0, tb = c.attribute("transpose_b") != 0;
  const std::int64_t inner = c.dim(f.a, ta ? first : first + 1);
  const double alpha = std::is_same_v<decltype(f), shapes::Matmul> ? c.attribute("alpha") : 1;
  Numbers out(index(batch * rows * columns));
  for (std::int64_t n = 0; n < batch; ++n) {
    const double* pa = a.data() + n * rows * inner;
    const double* pb = b.data() + n * columns * inner;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < inner; ++k)
          sum += (ta ? pa[k * rows + i] : pa[i * inner + k]) * (tb ? pb[j * inner + k] : pb[k * columns + j]);
        out[index((n * rows + i) * columns + j)] = alpha * sum;
      }
    }
  }
  return {{f.c, out}};
});
