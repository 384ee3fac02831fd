const Formulas<shapes::RoundFp8> round_fp8([](const ReferenceCall& c, auto f) -> ReferenceResults {
  Numbers y = c[f.x];
  const shapes::Fp8Format format = shapes::fp8_format(static_cast<int>(c.attribute("exponent_bits")));
  const double scale = c.attribute("scale");
  for (double& value : y) {
    const double size = std::abs(value / scale);
    const int exponent = size > 0 ? std::max(std::ilogb(size), format.least_exponent) : 0;
    const double step = std::ldexp(1.0, exponent - format.mantissa_bits);
    const double rounded = std::min(std::nearbyint(size / step) * step, double(format.largest));
    if (!std::isnan(value)) value = std::copysign(scale * rounded, value);
  }
  return {{f.y, y}};
});
