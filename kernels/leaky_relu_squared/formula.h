double leaky_squared(double u, double slope) {
  const double v = u > 0 ? u : slope * u;
  return v * v;
}

// u in the kernel's dtype. The square doubles rounding errors, so the formula rounds at the same places as the kernel.
double rounded_to(mlg_dtype dtype, double u) {
  if (dtype == MLG_BF16) return static_cast<float>(sdk::bfloat16(static_cast<float>(u)));
  if (dtype == MLG_F16) return static_cast<float>(sdk::float16(static_cast<float>(u)));
  return u;
}

const Formulas<shapes::LeakyReluSquaredForward> leaky_relu_squared([](const ReferenceCall& c,
                                                                      auto f) -> ReferenceResults {
  Numbers y = c[f.u];
  for (double& value : y) value = leaky_squared(value, c.attribute("slope"));
  return {{f.y, y}};
});

const Formulas<shapes::LinearLeakyReluSquaredForward> linear_leaky_relu_squared(
    [](const ReferenceCall& c, auto f) -> ReferenceResults {
      const Numbers x = c[f.x], w = c[f.w];
      const std::int64_t rows = c.dim(f.x, 0), inner = c.dim(f.w, 1), columns = c.dim(f.w, 0);
      Numbers u(index(rows * columns)), y;
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < inner; ++k) sum += x[index(i * inner + k)] * w[index(j * inner + k)];
          u[index(i * columns + j)] = sum;
        }
      }
      for (const double value : u)
        y.push_back(leaky_squared(rounded_to(c.type(f.y).dtype, value), c.attribute("slope")));
      return {{f.u, u}, {f.y, y}};
    });
