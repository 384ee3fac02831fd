const Formulas<shapes::AsymmetricSoftcapForward> asymmetric_softcap([](const ReferenceCall& c,
                                                                       auto f) -> ReferenceResults {
  Numbers y = c[f.z];
  const double positive = c[f.positive][0], negative = c[f.negative][0];
  for (double& value : y) {
    const double cap = value > 0 ? positive : negative;
    value = cap * std::tanh(value / cap);
  }
  return {{f.y, y}};
});
