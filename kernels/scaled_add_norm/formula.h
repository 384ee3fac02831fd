const Formulas<shapes::ScaledAddNormForward> scaled_add_norm([](const ReferenceCall& c,
                                                                auto f) -> ReferenceResults {
  const Numbers y = scaled_sum(c, f);
  return {{f.y, y}, {f.n, normed(c, y, c.dim(f.x, 1))}};
});
