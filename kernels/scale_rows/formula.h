const Formulas<shapes::ScaleRowsForward> scale_rows([](const ReferenceCall& c, auto f) -> ReferenceResults {
  Numbers y = c[f.w];
  const Numbers s = c[f.s];
  const std::size_t columns = y.size() / s.size();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= s[i / columns];
  return {{f.y, y}};
});
