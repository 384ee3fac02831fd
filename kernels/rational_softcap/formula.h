const Formulas<shapes::RationalSoftcapForward> rational_softcap([](const ReferenceCall& c,
                                                                   auto f) -> ReferenceResults {
  Numbers y = c[f.z];
  const double cap = c.attribute("cap");
  for (double& value : y) value *= cap / std::sqrt(value * value + cap * cap);
  return {{f.y, y}};
});
