const Formulas<shapes::ResidualMixNormForward> residual_mix_norm([](const ReferenceCall& c,
                                                                    auto f) -> ReferenceResults {
  const Numbers y = mixed(c[f.x], c[f.x0], c[f.mix]);
  return {{f.y, y}, {f.n, normed(c, y, c.dim(f.x, 1))}};
});
