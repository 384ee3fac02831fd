const Formulas<shapes::CrossEntropyForward> cross_entropy([](const ReferenceCall& c,
                                                             auto f) -> ReferenceResults {
  const Numbers logits = c[f.logits], targets = c[f.targets];
  const std::int64_t columns = c.dim(f.logits, 1);
  Numbers loss, lse;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const auto row = logits.begin() + static_cast<std::int64_t>(t) * columns;
    const double most = *std::max_element(row, row + columns);
    double sum = 0;
    for (auto at = row; at != row + columns; ++at) sum += std::exp(*at - most);
    lse.push_back(most + std::log(sum));
    loss.push_back(targets[t] < 0 ? 0 : lse.back() - row[static_cast<std::int64_t>(targets[t])]);
  }
  return {{f.token_loss, loss}, {f.lse, lse}};
});
