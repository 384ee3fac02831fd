const Formulas<shapes::HeadGateXsaForward> head_gate_xsa([](const ReferenceCall& c,
                                                            auto f) -> ReferenceResults {
  Numbers o = c[f.o];
  const std::int64_t heads = c.dim(f.o, 1), width = c.dim(f.o, 2);
  const Numbers v = c.has(f.v) ? c[f.v] : Numbers(), gate = c.has(f.gate) ? c[f.gate] : Numbers();
  const std::int64_t kv_heads = v.empty() ? heads : c.dim(f.v, 1);
  for (std::int64_t head = 0; head < static_cast<std::int64_t>(o.size()) / width; ++head) {
    double* at = o.data() + head * width;
    if (!v.empty()) {
      const std::int64_t kv = head / heads * kv_heads + head % heads / (heads / kv_heads);
      const double* value = v.data() + kv * width;
      double squares = 0, dot = 0;
      for (std::int64_t i = 0; i < width; ++i) squares += value[i] * value[i];
      const double length = std::max(std::sqrt(squares), 1e-12);
      for (std::int64_t i = 0; i < width; ++i) dot += at[i] * value[i] / length;
      for (std::int64_t i = 0; i < width; ++i) at[i] -= dot * value[i] / length;
    }
    if (gate.empty()) continue;
    for (std::int64_t i = 0; i < width; ++i) at[i] *= sigmoid(c.attribute("gate_scale") * gate[index(head)]);
  }
  return {{f.y, o}};
});
