const Formulas<shapes::SkipMergeForward> skip_merge([](const ReferenceCall& c, auto f) -> ReferenceResults {
  Numbers y = c[f.x];
  const Numbers s = c[f.s], weight = c[f.weight], gate = c.has(f.gate) ? c[f.gate] : Numbers();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double skip = weight[i % weight.size()] * s[i];
    y[i] = gate.empty() ? y[i] + skip : skip + sigmoid(gate[i % gate.size()]) * (y[i] - skip);
  }
  return {{f.y, y}};
});
