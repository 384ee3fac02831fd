const Formulas<shapes::SiluGateForward> silu_gate([](const ReferenceCall& c, auto f) -> ReferenceResults {
  Numbers y = c[f.g];
  const Numbers u = c[f.u];
  for (std::size_t i = 0; i < y.size(); ++i) y[i] *= sigmoid(y[i]) * u[i];
  return {{f.y, y}};
});
