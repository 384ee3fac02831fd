// The three of family qwen2.
const Formulas<shapes::WeightedRmsNormForward> weighted_rms_norm([](const ReferenceCall& c,
                                                                    auto f) -> ReferenceResults {
  const Numbers weight = c[f.weight];
  Numbers y = normed(c[f.x], c.dim(f.x, 1), 1, c.attribute("eps"));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= weight[i % weight.size()];
  return {{f.y, y}};
});
