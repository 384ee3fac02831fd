const Formulas<shapes::Axpby> axpby([](const ReferenceCall& c, auto f) -> ReferenceResults {
  Numbers y = c[f.a];
  const Numbers b = c.has(f.b) ? c[f.b] : Numbers();
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = c.attribute("alpha") * y[i] + (b.empty() ? 0 : c.attribute("beta") * b[i]);
  return {{f.y, y}};
});
