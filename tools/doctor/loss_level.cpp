#include "tools/doctor/loss_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "framework/model/elements/masking/config.h"

namespace mulligan::doctor {
namespace {

constexpr double none = std::numeric_limits<double>::infinity();

}  // namespace

Finding judge_initial_loss(double loss_nats, const ModelConfig& model) {
  const double nats = std::log(static_cast<double>(model.vocabulary));
  const double spread = model.embedding_init_std * std::sqrt(static_cast<double>(model.width));
  // A softcap keeps logits from being further apart.
  const double logits = model.softcap > 0 ? std::min(spread, model.softcap) : spread;
  const double expected = nats + logits * logits / 2, slack = std::max(0.05 * nats, 0.3);
  Finding f;
  f.id = "D09";
  f.title = "loss of the initial weights";
  f.measured = fmt::format("{:.4f} nats; ln V = {:.4f}, expected {:.4f}", loss_nats, nats, expected);
  f.threshold = fmt::format("fails further than {:.3f} nats from it", slack);
  f.verdict = judge(loss_nats, {expected - slack, expected + slack, -none, none});
  if (f.verdict == Verdict::pass) return f;
  f.message = fmt::format(
      "before any step the loss is {:.4f} nats, where {:.4f} is what weights that know nothing have",
      loss_nats, expected);
  f.hint = loss_nats < expected
               ? "look at the targets (D19) and the corpus (D21 to D23)"
               : "look at the loss (D01) and the scale of the logits (model.embedding_init_std)";
  return f;
}

Finding judge_trained_loss(double loss_nats, int vocabulary, double floor_nats) {
  const double nats = std::log(static_cast<double>(vocabulary));
  Finding f;
  f.id = "D10";
  f.title = "loss of the weights that training begins with";
  f.measured = fmt::format("{:.4f} nats; ln V = {:.4f}, floor {:.4f}", loss_nats, nats, floor_nats);
  f.threshold = fmt::format("fails above 0.7 ln V = {:.4f} or below the floor", 0.7 * nats);
  f.verdict = judge(loss_nats, {floor_nats, 0.7 * nats, -none, none});
  if (f.verdict == Verdict::pass) return f;
  if (loss_nats < floor_nats) {
    f.message = fmt::format("the loss of {:.4f} nats is below what the data allow", loss_nats);
    f.hint = "look at the targets (D19) and the corpus (D21 to D23)";
  } else {
    f.message =
        loss_nats > nats
            ? fmt::format("the loss of {:.4f} nats is worse than uniform: forward path or tokenizer mismatch",
                          loss_nats)
            : fmt::format("the loss of {:.4f} nats is that of weights that know little", loss_nats);
    f.hint = "compare tokenizer and weights (data.tokenizer), then the forward pass (--stage forward)";
  }
  return f;
}

double loss_floor(const ModelConfig& model, double bigram_nats) {
  return predicts_masked(model) ? 0 : 0.3 * bigram_nats;
}

Finding judge_logits(const std::vector<double>& logits, const ModelConfig& model) {
  Finding f;
  f.id = "D11";
  f.title = "logits";
  f.threshold =
      "fails: not finite, deviation below 0.01, peak below 1.5 deviations, one token everywhere, above 5 % "
      "at the softcap";
  const auto v = static_cast<std::size_t>(model.vocabulary);
  const std::size_t rows = logits.size() / v;
  std::set<std::ptrdiff_t> likeliest;
  double sum = 0, squares = 0, peaks = 0;
  std::size_t capped = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const double> row(logits.data() + r * v, v);
    const auto broken = std::ranges::find_if(row, [](double value) { return !std::isfinite(value); });
    if (broken != row.end()) {
      f.verdict = Verdict::fail;
      f.measured =
          fmt::format("the logit of token {} at position {} is {}", broken - row.begin(), r, *broken);
      f.message = f.measured;
      f.hint = "look at the weights (D06) and the forward pass (--stage forward)";
      return f;
    }
    double row_sum = 0, row_squares = 0;
    for (const double value : row) {
      row_sum += value;
      row_squares += value * value;
      capped += model.softcap > 0 && std::abs(value) > 0.99 * model.softcap;
    }
    const double mean = row_sum / static_cast<double>(v);
    const double deviation = std::sqrt(std::max(0.0, row_squares / static_cast<double>(v) - mean * mean));
    const auto most = std::ranges::max_element(row);
    likeliest.insert(most - row.begin());
    peaks += (*most - mean) / std::max(deviation, 1e-12);
    sum += row_sum;
    squares += row_squares;
  }
  const auto count = static_cast<double>(logits.size());
  const double deviation = std::sqrt(std::max(0.0, squares / count - std::pow(sum / count, 2)));
  const double peak = peaks / static_cast<double>(rows), share = static_cast<double>(capped) / count;
  f.measured = fmt::format(
      "deviation {:.3g}, peak {:.2f} deviations, {} likeliest tokens at {} positions, {:.2g} % at the "
      "softcap",
      deviation, peak, likeliest.size(), rows, 100 * share);
  if (deviation < 0.01)
    f.message = fmt::format("the logits have a deviation of {:.3g}: the model says the same of all tokens",
                            deviation);
  if (peak < 1.5) f.message = fmt::format("the largest logit is {:.2f} deviations above the mean", peak);
  if (likeliest.size() == 1 && rows > 1)
    f.message =
        fmt::format("token {} is the likeliest at every one of {} positions", *likeliest.begin(), rows);
  if (share > 0.05) f.message = fmt::format("{:.1f} % of the logits are at the softcap", 100 * share);
  if (f.message.empty()) return f;
  f.verdict = Verdict::fail;
  f.hint = "look at the weights (--stage weights) and the forward pass (--stage forward)";
  return f;
}

}  // namespace mulligan::doctor
