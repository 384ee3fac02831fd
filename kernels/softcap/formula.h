const Formulas<shapes::SoftcapForward> softcap([](const ReferenceCall& c, auto f) -> ReferenceResults {
  Numbers y = c[f.z];
  const double cap = c.attribute("cap");
  for (double& value : y) value = cap * std::tanh(value / cap);
  return {{f.y, y}};
});
