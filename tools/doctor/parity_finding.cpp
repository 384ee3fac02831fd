#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/doctor/parity.h"

namespace mulligan::doctor {
namespace {

const ParityTap* logits_of(const ParityReport& report) {
  const ParityTap* last = nullptr;
  for (const ParityTap& tap : report.taps) {
    if (tap.name == "logits" || tap.name == "softcapped_logits") last = &tap;
  }
  return last;
}

std::string fault(const ParityReport& report) {
  const ParityTolerance& limit = report.tolerance;
  if (report.first) {
    const ParityTap& tap = report.taps[*report.first];
    return fmt::format("first diverging op: {} ({}) pos {} cos {:.6f}, off by {:.2e} of the rms", tap.name,
                       tap.kernel, tap.position, tap.cosine, tap.alone);
  }
  const ParityTap* logits = logits_of(report);
  if (logits && (logits->difference > limit.pass || !(logits->cosine >= limit.cosine))) {
    return fmt::format("no single op diverges, but the logits are off by {:.2e} of the rms, cos {:.6f}",
                       logits->difference, logits->cosine);
  }
  const auto apart = [&](double a, double b) { return !std::isnan(b) && !(std::abs(a - b) <= limit.loss); };
  if (std::isnan(report.reference_loss)) return {};
  if (apart(report.loss, report.loss_of_tested_logits)) {
    return fmt::format("the cross entropy of the same logits is {:.6f} here and {:.6f} by the reference",
                       report.loss, report.loss_of_tested_logits);
  }
  if (apart(report.loss_of_tested_logits, report.reference_loss)) {
    return fmt::format("the loss is {:.6f}, the reference's {:.6f}, and no op is the cause alone",
                       report.loss, report.reference_loss);
  }
  return {};
}

}  // namespace

Finding judge_parity(const ParityReport& report, const std::string& against) {
  Finding f;
  f.id = "D12";
  f.title = "forward pass against " + against;
  double worst = 0;
  for (const ParityTap& tap : report.taps)
    worst = std::isnan(tap.alone) ? tap.alone : std::max(worst, tap.alone);
  f.measured = fmt::format("{} ops, the worst off by {:.2e} of the rms", report.taps.size(), worst);
  if (const ParityTap* logits = logits_of(report))
    f.measured += fmt::format("; logits {:.2e}, cos {:.6f}", logits->difference, logits->cosine);
  if (!std::isnan(report.reference_loss))
    f.measured += fmt::format("; loss {:.6f} / {:.6f} / {:.6f} nats", report.loss,
                              report.loss_of_tested_logits, report.reference_loss);
  f.threshold =
      fmt::format("an op off by more than {:.0e}, logits by {:.0e} or cos below {}, loss by {:.0e} nats",
                  report.tolerance.op, report.tolerance.pass, report.tolerance.cosine, report.tolerance.loss);
  f.message = fault(report);
  f.verdict = f.message.empty() ? CheckOutcome::pass : CheckOutcome::fail;
  if (f.verdict == CheckOutcome::fail)
    f.hint = "ops before it agree, so fix that one: its kernel, or what the model gives it";
  return f;
}

std::string parity_text(const ParityReport& report) {
  std::string text = fmt::format("{:<40} {:<26} {:>10} {:>10} {:>10} {:>6}\n", "value", "kernel", "cos",
                                 "whole pass", "alone", "pos");
  for (const ParityTap& tap : report.taps) {
    text += fmt::format("{:<40} {:<26} {:>10.6f} {:>10.2e} {:>10.2e} {:>6}\n", tap.name, tap.kernel,
                        tap.cosine, tap.difference, tap.alone,
                        tap.position < 0 ? std::string("-") : std::to_string(tap.position));
  }
  return text;
}

}  // namespace mulligan::doctor
