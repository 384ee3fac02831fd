#include "tools/doctor/loss_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "framework/check/loss_values.h"

namespace mulligan::doctor {
namespace {

constexpr double none = std::numeric_limits<double>::infinity();

}  // namespace

Finding judge_uniform_loss(double loss, int vocabulary, DType compute) {
  const double nats = std::log(vocabulary), slack = uniform_slack(vocabulary, compute);
  Finding f;
  f.id = "D01";
  f.title = "loss of equal logits";
  f.measured = fmt::format("{:.5f}; ln {} = {:.5f} nats, log2 {} = {:.5f} bits", loss, vocabulary, nats,
                           vocabulary, nats / std::numbers::ln2);
  f.threshold = fmt::format("fails more than {:.5f} below ln V, warns as much above", slack);
  f.verdict = judge(loss, {nats - slack, none, -none, nats + slack});
  const bool bits = is_in_bits(loss, vocabulary);
  if (bits) f.verdict = Verdict::fail;
  if (f.verdict == Verdict::pass) return f;
  f.message = fmt::format("the loss of equal logits is {:.5f}, but ln {} is {:.5f} nats{}", loss, vocabulary,
                          nats, bits ? "; it is log2 of it: the loss is in bits" : "");
  f.hint = f.verdict == Verdict::fail
               ? "mend the loss plugin: everything here is in nats; one that is no cross entropy says so "
                 "(cross_entropy = false in its class)"
               : "compare this training loss with no validation loss: it holds a further term";
  return f;
}

Finding judge_loss_gradient(double certain_loss, double largest_row_sum, DType compute, double furthest) {
  const double slack = compute == MLG_F32 ? 1e-4 : 4e-3;
  Finding f;
  f.id = "D02";
  f.title = "loss of certain logits, gradient of equal ones";
  f.measured = fmt::format(
      "loss {:.2e}, largest sum of a gradient's row {:.2e}, furthest from softmax minus target {:.2e}",
      certain_loss, largest_row_sum, furthest);
  f.threshold = fmt::format("the first two above {0:.0e} fail, the third above {0:.0e} warns", slack);
  f.verdict = std::max(judge(std::abs(certain_loss), {-none, slack, -none, none}),
                       judge(std::abs(largest_row_sum), {-none, slack, -none, none}));
  if (f.verdict == Verdict::pass && !(furthest <= slack)) {
    f.verdict = Verdict::warn;
    f.message = fmt::format(
        "the gradient of equal logits is off by {:.3g} from softmax minus target in some row, so some tokens "
        "teach less, more or something else than the loss says",
        furthest);
    f.hint = "nothing, where the loss smooths or weighs its targets on purpose; else mend the loss plugin";
  }
  if (f.verdict != Verdict::fail) return f;
  f.message =
      std::abs(certain_loss) > slack
          ? fmt::format("logits that name the target have a loss of {:.4g}", certain_loss)
          : fmt::format("the gradient of a row of equal logits sums to {:.4g}, not to 0", largest_row_sum);
  f.hint = "mend the loss plugin (mulligan plugins check compares its gradients with finite differences)";
  return f;
}

Finding judge_other_loss(const LossValues& values) {
  Finding f;
  f.id = "D01";
  f.title = "loss of equal logits";
  f.measured =
      fmt::format("{:.5f}, of certain ones {:.5f}; its plugin says that it is no cross entropy in nats",
                  values.equal, values.certain);
  f.threshold = "fails where it does not fall as the target becomes more likely";
  f.message = loss_value_problem(values, false, 0, MLG_F32);
  if (f.message.empty()) return f;
  f.verdict = Verdict::fail;
  f.hint = "mend the loss plugin: training would lead away from the targets";
  return f;
}

std::optional<double> loss_excess(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                  DType compute) {
  if (!loss.is_cross_entropy()) return std::nullopt;
  return loss_values(backend, loss, vocabulary, softcap, compute).equal -
         std::log(static_cast<double>(vocabulary));
}

std::vector<Finding> check_loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                       DType compute) {
  const LossValues values = loss_values(backend, loss, vocabulary, softcap, compute);
  if (!loss.is_cross_entropy()) return {judge_other_loss(values)};
  const Finding uniform = judge_uniform_loss(values.equal, vocabulary, compute);
  Finding sharp = judge_loss_gradient(values.certain - values.softcap_leaves, values.largest_row_sum, compute,
                                      values.furthest);
  // A further term, of which D01 has told, has values and gradients of its own.
  if (uniform.verdict == Verdict::warn && sharp.verdict == Verdict::fail) {
    sharp.verdict = Verdict::warn;
    sharp.hint = uniform.hint;
  }
  return {uniform, sharp};
}

}  // namespace mulligan::doctor
