const Formulas<shapes::Cast> cast([](const ReferenceCall& c, auto f) -> ReferenceResults {
  return {{f.y, c[f.x]}};
});
