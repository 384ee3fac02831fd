#include "tools/doctor/model_checks.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <span>

#include "framework/check/loss_probe.h"
#include "framework/model/elements/masking/config.h"

namespace mulligan::doctor {
namespace {

// Of the initial elements of the matrix that makes logits.
double head_deviation(const ModelConfig& model, const std::vector<ParameterSpec>& parameters) {
  const auto head = std::ranges::find(parameters, head_parameter(model), &ParameterSpec::name);
  if (head == parameters.end() || head->initial.empty()) return 0;
  const InitialPart& part = head->initial.front();
  if (part.kind == Initial::uniform) return part.value / std::numbers::sqrt3;
  return part.kind == Initial::normal ? part.value : 0;
}

// Whether that matrix is zero.
bool begins_with_zeros(const ModelConfig& model) {
  const std::vector<ParameterSpec> parameters = model_parameters(model);
  const auto head = std::ranges::find(parameters, head_parameter(model), &ParameterSpec::name);
  return head != parameters.end() && std::ranges::all_of(head->initial, [](const InitialPart& part) {
           return part.kind == Initial::zeros;
         });
}

}  // namespace

Finding judge_initial_loss(double loss_nats, const ModelConfig& model,
                           const std::vector<ParameterSpec>& parameters) {
  const double nats = std::log(static_cast<double>(model.vocabulary));
  const double spread = head_deviation(model, parameters) * std::sqrt(static_cast<double>(model.width));
  // A softcap keeps logits from being further apart.
  const double logits = model.softcap > 0 ? std::min(spread, model.softcap) : spread;
  const double expected = nats + logits * logits / 2, slack = std::max(0.05 * nats, 0.3);
  Finding f = begin_finding("D09", "loss of the initial weights",
                            fmt::format("fails further than {:.3f} nats from it", slack));
  f.measured = fmt::format("{:.4f} nats; ln V = {:.4f}, expected {:.4f}", loss_nats, nats, expected);
  return judged(
      std::move(f), judge(loss_nats, {expected - slack, expected + slack}),
      fmt::format(
          "before any step the loss is {:.4f} nats, where {:.4f} is what weights that know nothing have",
          loss_nats, expected),
      loss_nats < expected ? "look at the targets (D19) and the corpus (D21 to D23)"
                           : "look at the loss (D01) and the scale of the logits (model.embedding_init_std)");
}

Finding judge_trained_loss(double loss_nats, int vocabulary, double floor_nats) {
  const double nats = std::log(static_cast<double>(vocabulary));
  Finding f = begin_finding("D10", "loss of the weights that training begins with",
                            fmt::format("fails above 0.7 ln V = {:.4f} or below the floor", 0.7 * nats));
  f.measured = fmt::format("{:.4f} nats; ln V = {:.4f}, floor {:.4f}", loss_nats, nats, floor_nats);
  const bool below = loss_nats < floor_nats;
  return judged(
      f, judge(loss_nats, {floor_nats, 0.7 * nats}),
      fmt::format("the loss of {:.4f} nats is {}", loss_nats,
                  below              ? "below what the data allow"
                  : loss_nats > nats ? "worse than uniform: forward path or tokenizer mismatch"
                                     : "that of weights that know little"),
      below ? "look at the targets (D19) and the corpus (D21 to D23)"
            : "compare tokenizer and weights (data.tokenizer), then the forward pass (--stage forward)");
}

double loss_floor(const ModelConfig& model, double bigram_nats) {
  return predicts_masked(model) ? 0 : 0.3 * bigram_nats;
}

Finding judge_logits(const std::vector<double>& logits, const ModelConfig& model, bool initial) {
  if (initial && begins_with_zeros(model)) {
    const auto others = std::ranges::count_if(logits, [](double value) { return value != 0; });
    Finding f = begin_finding("D11", "logits of an output head of zeros", "fails: one that is not 0");
    f.measured = fmt::format("{} of {} are not 0", others, logits.size());
    return others == 0 ? f : failed(f, f.measured, "look at the forward pass (--stage forward)");
  }
  Finding f = begin_finding(
      "D11", "logits",
      "fails: not finite, standard deviation below 0.01, peak below 1.5 of them, one token everywhere, above 5 % "
      "at the softcap");
  const auto v = static_cast<std::size_t>(model.vocabulary);
  const std::size_t rows = logits.size() / v;
  std::set<std::ptrdiff_t> likeliest;
  double sum = 0, squares = 0, peaks = 0;
  std::size_t capped = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const double> row(logits.data() + r * v, v);
    const auto broken = std::ranges::find_if(row, [](double value) { return !std::isfinite(value); });
    if (broken != row.end()) {
      f.measured =
          fmt::format("the logit of token {} at position {} is {}", broken - row.begin(), r, *broken);
      return failed(f, f.measured, "look at the weights (D06) and the forward pass (--stage forward)");
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
      "standard deviation {:.3g}, peak {:.2f} of them, {} likeliest tokens at {} positions, {:.2g} % at the "
      "softcap",
      deviation, peak, likeliest.size(), rows, 100 * share);
  std::string why;
  if (deviation < 0.01)
    why = fmt::format("the logits have a standard deviation of {:.3g}: the model says the same of all tokens",
                      deviation);
  if (peak < 1.5) why = fmt::format("the largest logit is {:.2f} standard deviations above the mean", peak);
  if (likeliest.size() == 1 && rows > 1)
    why = fmt::format("token {} is the likeliest at every one of {} positions", *likeliest.begin(), rows);
  if (share > 0.05) why = fmt::format("{:.1f} % of the logits are at the softcap", 100 * share);
  if (why.empty()) return f;
  return failed(f, why, "look at the weights (--stage weights) and the forward pass (--stage forward)");
}

Finding judge_uniform_loss(double loss, int vocabulary, DType compute) {
  const double nats = std::log(vocabulary), slack = uniform_slack(vocabulary, compute);
  Finding f = begin_finding("D01", "loss of equal logits",
                            fmt::format("fails more than {:.5f} below ln V, warns as much above", slack));
  f.measured = fmt::format("{:.5f}; ln {} = {:.5f} nats, log2 {} = {:.5f} bits", loss, vocabulary, nats,
                           vocabulary, nats / std::numbers::ln2);
  const bool bits = is_in_bits(loss, vocabulary);
  const CheckOutcome verdict =
      bits ? CheckOutcome::fail : judge(loss, {nats - slack, no_limit, -no_limit, nats + slack});
  return judged(
      f, verdict,
      fmt::format("the loss of equal logits is {:.5f}, but ln {} is {:.5f} nats{}", loss, vocabulary, nats,
                  bits ? "; it is log2 of it: the loss is in bits" : ""),
      verdict == CheckOutcome::fail
          ? "fix the loss plugin: everything here is in nats; one that is not a cross entropy declares "
            "it (cross_entropy = false in its class)"
          : "compare this training loss with no validation loss: it holds a further term");
}

Finding judge_loss_gradient(double certain_loss, double largest_row_sum, DType compute, double furthest) {
  const double slack = compute == MLG_F32 ? 1e-4 : 4e-3;
  Finding f =
      begin_finding("D02", "loss of certain logits, gradient of equal ones",
                    fmt::format("the first two above {0:.0e} fail, the third above {0:.0e} warns", slack));
  f.measured = fmt::format(
      "loss {:.2e}, largest sum of a gradient's row {:.2e}, furthest from softmax minus target {:.2e}",
      certain_loss, largest_row_sum, furthest);
  f.note(std::max(judge(std::abs(certain_loss), {-no_limit, slack}),
                  judge(std::abs(largest_row_sum), {-no_limit, slack})),
         std::abs(certain_loss) > slack
             ? fmt::format("logits that name the target have a loss of {:.4g}", certain_loss)
             : fmt::format("the gradient of a row of equal logits sums to {:.4g}, not to 0", largest_row_sum),
         "fix the loss plugin (mulligan plugins check compares its gradients with finite differences)");
  if (!(furthest <= slack)) {
    f.note(
        CheckOutcome::warn,
        fmt::format(
            "the gradient of equal logits is off by {:.3g} from softmax minus target in some row, so some tokens "
            "teach less, more or something else than the loss says",
            furthest),
        "nothing, where the loss smooths or weighs its targets on purpose; else fix the loss plugin");
  }
  return f;
}

Finding judge_other_loss(const LossValues& values) {
  Finding f = begin_finding("D01", "loss of equal logits",
                            "fails where it does not fall as the target becomes more likely");
  f.measured =
      fmt::format("{:.5f}, of certain ones {:.5f}; its plugin says that it is not a cross entropy in nats",
                  values.equal, values.certain);
  const std::string problem = loss_value_problem(values, false, 0, MLG_F32);
  if (problem.empty()) return f;
  return failed(f, problem, "fix the loss plugin: training would lead away from the targets");
}

std::vector<Finding> check_loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                       DType compute) {
  const LossValues values = loss_values(backend, loss, vocabulary, softcap, compute);
  if (!loss.is_cross_entropy()) return {judge_other_loss(values)};
  const Finding uniform = judge_uniform_loss(values.equal, vocabulary, compute);
  Finding sharp = judge_loss_gradient(values.certain - values.softcap_leaves, values.largest_row_sum, compute,
                                      values.furthest);
  // A further term, which D01 names, has values and gradients of its own.
  if (uniform.verdict == CheckOutcome::warn && sharp.verdict == CheckOutcome::fail) {
    sharp.verdict = CheckOutcome::warn;
    sharp.hint = uniform.hint;
  }
  return {uniform, sharp};
}

}  // namespace mulligan::doctor
