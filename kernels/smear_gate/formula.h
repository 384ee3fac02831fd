// Each row takes in a gated share of the one before it, as that one was.
const Formulas<shapes::SmearGateForward> smear_gate([](const ReferenceCall& c, auto f) -> ReferenceResults {
  const Numbers x = c[f.x], tokens = c[f.tokens], weight = c[f.weight];
  Numbers y = x;
  const std::size_t width = index(c.dim(f.x, 1));
  const auto row_length = static_cast<std::size_t>(c.attribute("row_length"));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (t % row_length == 0 || tokens[t] == c.attribute("document_start")) continue;
    double logit = 0;
    for (std::size_t j = 0; j < weight.size(); ++j) logit += weight[j] * x[t * width + j];
    const double share = c[f.lambda][0] * sigmoid(logit);
    for (std::size_t j = 0; j < width; ++j) y[t * width + j] += share * x[(t - 1) * width + j];
  }
  return {{f.y, y}};
});
