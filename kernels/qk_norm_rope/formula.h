struct Rotation {
  Numbers cos, sin;
  std::int64_t dims, row_length;
  bool norm;
  double eps;
};
Rotation rotation_of(const ReferenceCall& c, std::size_t cos) {
  return {c[cos],
          c[cos + 1],
          static_cast<std::int64_t>(c.attribute("rope_dims")),
          static_cast<std::int64_t>(c.attribute("row_length")),
          c.attribute("norm") != 0,
          c.attribute("eps")};
}
// Heads [T, G, h]: normed, then elements (j, j + dims/2) turned by the angle of the position; `gain` may
// be empty.
Numbers rotated(Numbers x, std::int64_t heads, std::int64_t width, const Rotation& r, const Numbers& gain) {
  if (r.norm) x = normed(x, width, 1, r.eps);
  const std::int64_t half = r.dims / 2;
  for (std::int64_t head = 0; head < static_cast<std::int64_t>(x.size()) / width; ++head) {
    double* u = x.data() + head * width;
    const std::int64_t position = r.row_length > 0 ? (head / heads) % r.row_length : 0;
    for (std::int64_t j = 0; j < half; ++j) {
      const double cos = r.cos[index(position * half + j)], sin = r.sin[index(position * half + j)];
      const double a = u[j], b = u[j + half];
      u[j] = a * cos + b * sin;
      u[j + half] = -a * sin + b * cos;
    }
    if (gain.empty()) continue;
    for (std::int64_t j = 0; j < width; ++j) u[j] *= gain[index(head % heads)];
  }
  return x;
}

const Formulas<shapes::QkNormRopeForward> qk_norm_rope([](const ReferenceCall& c,
                                                          auto f) -> ReferenceResults {
  return {{f.y, rotated(c[f.x], c.dim(f.x, 1), c.dim(f.x, 2), rotation_of(c, f.cos),
                        c.has(f.gain) ? c[f.gain] : Numbers())}};
});

const Formulas<shapes::QkvSplitNormRopeForward> qkv_split_norm_rope([](const ReferenceCall& c,
                                                                       auto f) -> ReferenceResults {
  const Numbers packed = c[f.packed];
  const std::int64_t tokens = c.dim(f.packed, 0), row = c.dim(f.packed, 1);
  const auto part = [&](std::int64_t begin, std::int64_t size) {
    Numbers out;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto at = packed.begin() + t * row + begin;
      out.insert(out.end(), at, at + size);
    }
    return out;
  };
  const std::int64_t q = c.dim(f.q, 1), k = c.dim(f.k, 1), width = c.dim(f.q, 2);
  const Rotation r = rotation_of(c, f.cos);
  ReferenceResults results{
      {4, rotated(part(0, q * width), q, width, r, c.has(f.gain) ? c[f.gain] : Numbers())},
      {f.k, rotated(part(q * width, k * width), k, width, r, {})},
      {f.v, part((q + k) * width, k * width)}};
  if (c.has(f.gate)) results[f.gate] = part((q + 2 * k) * width, q);
  return results;
});
