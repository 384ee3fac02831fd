const Formulas<shapes::ConcatRowsForward> concat_rows([](const ReferenceCall& c, auto f) -> ReferenceResults {
  const char* rows[] = {nullptr, "row_b", "row_c", "row_d"};
  Numbers y(index(c.type(f.y).elements()), 0);
  const std::int64_t width = c.dim(f.y, 1);
  for (std::size_t part = 0; part < 4; ++part) {
    if (!c.has(part)) continue;
    const std::int64_t row = part == 0 ? 0 : static_cast<std::int64_t>(c.attribute(rows[part]));
    const Numbers values = c[part];
    const std::int64_t columns = c.dim(part, 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      y[index((row + at / columns) * width + at % columns)] = values[i];
    }
  }
  return {{f.y, y}};
});
