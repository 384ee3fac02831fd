const Formulas<shapes::RowBiasForward> row_bias([](const ReferenceCall& c, auto f) -> ReferenceResults {
  const Numbers bias = c[f.bias];
  Numbers y = c[f.x];
  y.resize(index(c.dim(f.y, 0) * c.dim(f.y, 1)));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  return {{f.y, y}};
});
