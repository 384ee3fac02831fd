const Formulas<shapes::EmbeddingForward> embedding([](const ReferenceCall& c, auto f) -> ReferenceResults {
  const Numbers ids = c[f.ids], table = c[f.table];
  const std::int64_t width = c.dim(f.table, 1);
  Numbers x;
  for (const double id : ids) {
    const auto row = table.begin() + static_cast<std::int64_t>(id) * width;
    x.insert(x.end(), row, row + width);
  }
  return {{f.x, x}};
});
