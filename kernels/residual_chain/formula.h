const Formulas<shapes::ResidualChainForward> residual_chain([](const ReferenceCall& c,
                                                               auto f) -> ReferenceResults {
  const Numbers sum = scaled_sum(c, f), skip = c.has(f.skip) ? c[f.skip] : sum;
  const Numbers merged = blended(sum, skip, optional(c, f.weight), optional(c, f.gate));
  const Numbers y = mixed(merged, c[f.x0], c[f.mix]);
  return {{f.sum, sum}, {f.merged, merged}, {f.y, y}, {f.n, normed(c, y, c.dim(f.x, 1))}};
});
