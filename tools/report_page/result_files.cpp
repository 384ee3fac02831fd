#include "tools/report_page/result_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/core/printable.h"
#include "framework/report/json_lines.h"

namespace mulligan::report {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The member `key` of an object, or null.
const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}
std::optional<double> number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return {};
  return value.get<double>();
}
double number_or(const Json& object, const char* key, double otherwise) {
  return number(object, key).value_or(otherwise);
}
std::string text(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_null() ? "" : value.get<std::string>();
}

// Bits per byte of sums, or nats per token where there are no bytes; NaN where there are no sums.
double score(const Json& sums, bool bits) {
  return number_or(sums, bits ? "bpb" : "loss_nats", nan);
}

TttRecord::Batch ttt_batch(const Json& json, bool bits) {
  TttRecord::Batch batch{number_or(json, "queue", nan),
                         score(member(json, "running"), bits),
                         score(member(member(json, "compared"), "with"), bits),
                         score(member(member(json, "compared"), "without"), bits),
                         {}};
  for (const auto& [name, norms] : member(json, "adapters").items()) {
    batch.adapters.emplace_back(name,
                                std::pair(number_or(norms, "norm", nan), number_or(norms, "drift", nan)));
  }
  return batch;
}

TttRecord::Phase ttt_phase(const Json& json) {
  TttRecord::Phase phase{number_or(json, "phase", nan),
                         number_or(json, "documents", 0),
                         number_or(json, "tokens", 0),
                         number_or(json, "seconds", 0),
                         {}};
  for (const Json& step : member(json, "steps")) {
    phase.step_loss_nats.push_back(number_or(step, "loss_nats", nan));
  }
  return phase;
}

// "attention plans 22 + 0 + 1, ...": before the clock, on it and after it; empty where nothing is counted.
std::string made_text(const Json& json) {
  std::string all;
  for (const auto& [what, count] : member(json, "made_on_device").items()) {
    std::string name = what;
    std::ranges::replace(name, '_', ' ');
    all +=
        fmt::format("{}{} {} + {} + {}", all.empty() ? "" : ", ", name, number_or(count, "before_clock", 0),
                    number_or(count, "on_clock", 0), number_or(count, "after_clock", 0));
  }
  return all;
}

// "original text: 1.23450 by 1,000 bytes; tokenizer's text: 1.12340 by 1,100 bytes", the score's own first.
std::string byte_rule_text(const Json& json) {
  const std::string rule = text(json, "byte_rule");
  if (rule.empty()) return {};
  std::string own, other;
  for (const auto& [name, figures] : member(json, "by_byte_rule").items()) {
    (name == rule ? own : other) += fmt::format(
        "{}: {:.5f} by {} bytes", name == "original" ? "original text" : "tokenizer's text",
        number_or(figures, "bpb", nan), grouped(static_cast<std::int64_t>(number_or(figures, "bytes", 0))));
  }
  return own + (other.empty() ? "" : "; " + other);
}

}  // namespace

TrainingResult read_training_result(const fs::path& path) {
  return read_json_object<Json>(path, [](const Json& json) {
    TrainingResult result;
    result.parameters = number(json, "parameters");
    result.steps = number(json, "steps");
    result.tokens = number(json, "tokens");
    result.tokens_per_second = number(json, "tokens_per_second");
    result.peak_memory_bytes = number(json, "peak_memory_bytes");
    result.initial_loss_nats = number(json, "initial_loss_nats");
    result.final_loss_nats = number(json, "final_loss_nats");
    result.run_loss_nats = number(member(json, "train_loss"), "train_loss_run_nats");
    result.val_loss_nats = number(json, "val_loss_nats");
    result.val_bpb = number(json, "val_bpb");
    result.val_tokens = number(json, "val_tokens");
    result.val_bytes = number(json, "val_bytes");
    result.val_masked = json.value("val_masked", false);
    result.byte_rule = byte_rule_text(json);
    result.overlap = number(member(member(json, "data"), "overlap"), "share");
    result.overlap_copied = number(member(member(json, "data"), "overlap"), "copied");
    for (const auto& [phase, seconds] : member(json, "seconds").items()) {
      result.phase_seconds.emplace_back(phase, seconds.get<double>());
    }
    for (const Json& limit : member(json, "broken_limits"))
      result.broken_limits.push_back(limit.get<std::string>());
    for (const Json& finding : member(member(json, "doctor"), "findings")) {
      const std::string verdict = text(finding, "verdict");
      if (verdict != "FAIL" && verdict != "WARN") continue;
      result.doctor.push_back(fmt::format("Doctor, {} ({}): {}; {}.", text(finding, "id"),
                                          text(finding, "title"), text(finding, "message"),
                                          text(finding, "hint")));
    }
    for (const Json& plugin : member(json, "plugins")) {
      result.plugins.push_back(
          fmt::format("{} {} {}", text(plugin, "kind"), text(plugin, "name"), text(plugin, "version")));
    }
    result.device = text(json, "device");
    result.made = made_text(json);
    result.determinism = text(member(json, "determinism"), "level");
    result.backend_promise = text(member(json, "determinism"), "backend");
    result.cpu = text(json, "cpu");
    result.commit = text(json, "commit");
    result.weights = text(json, "weights");
    result.host = text(json, "host");
    result.started = text(json, "started");
    result.command = text(json, "command");
    result.ranks = number(json, "ranks");
    result.nodes = number(json, "nodes");
    result.launcher = text(json, "launcher");
    result.restarts = number(json, "restarts");
    result.duration_seconds = number(json, "duration_seconds");
    result.config_sha256 = text(json, "config_sha256");
    result.weights_sha256 = text(json, "weights_sha256");
    const Json& energy = member(json, "energy");
    result.energy_asked = !energy.is_null();
    result.joules = number(energy, "joules");
    result.joules_per_token = number(energy, "joules_per_token");
    for (const Json& name : member(energy, "counters"))
      result.energy_counters.push_back(name.get<std::string>());
    for (const Json& why : member(energy, "absent")) result.energy_absent.push_back(why.get<std::string>());
    return result;
  });
}

LedgerResult read_ledger_result(const fs::path& path) {
  return read_json_object<Json>(path, [](const Json& json) {
    LedgerResult ledger;
    for (const Json& stage : member(json, "stages")) {
      for (const auto& [phase, seconds] : member(stage, "seconds").items()) {
        ledger.phase_seconds.emplace_back(phase, seconds.get<double>());
      }
    }
    for (const Json& budget : member(json, "budgets")) {
      ledger.budgets.push_back({text(budget, "key"), text(budget, "what"), number_or(budget, "used", nan),
                                number_or(budget, "limit", nan)});
    }
    for (const Json& sentence : member(json, "broken")) ledger.broken.push_back(sentence.get<std::string>());
    return ledger;
  });
}

QuantizeResult read_quantize_result(const fs::path& path) {
  return read_json_object<Json>(path, [](const Json& json) {
    QuantizeResult result;
    result.artifact_bytes = json.at("artifact_bytes").get<double>();
    result.artifact_sha256 = text(json, "artifact_sha256");
    result.weights_sha256 = text(json, "weights_sha256");
    result.evaluation_source_bytes = number(json, "evaluation_source_bytes");
    result.source_bytes = number(json, "source_bytes");
    result.binary_bytes = number(json, "binary_bytes");
    result.limit_bytes = number_or(json, "limit_bytes", 0);
    for (const Json& tensor : member(json, "tensors")) {
      result.tensors.push_back(
          {text(tensor, "name"),
           fmt::format("[{}]", fmt::join(tensor.at("shape").get<std::vector<std::int64_t>>(), ", ")),
           text(tensor, "format"), number_or(tensor, "bytes", nan),
           number_or(tensor, "bits_per_element", nan)});
    }
    return result;
  });
}

TttRecord read_ttt_result(const fs::path& path) {
  return read_json_object<Json>(path, [](const Json& json) {
    TttRecord result;
    result.weights_sha256 = text(json, "weights_sha256");
    if (json.value("void", false)) {
      result.invalid_reason = text(json, "reason");
      return result;
    }
    const Json &with = member(json, "with_ttt"), &without = member(json, "without_ttt");
    result.bits = number_or(with, "bytes", 0) > 0;
    const char* key = result.bits ? "val_bpb" : "val_loss_nats";
    result.with_bpb = number(with, key);
    result.without_bpb = number(without, key);
    result.compared_bpb = number(member(member(json, "compared"), "with"), result.bits ? "bpb" : "loss_nats");
    result.evaluation_bpb = number(member(json, "evaluation"), key);
    result.tokens = number(with, "tokens");
    result.bytes = number(with, "bytes");
    result.weights = text(json, "weights");
    result.seconds = number_or(with, "seconds", 0);
    result.setup_seconds = number_or(json, "setup_seconds", 0);
    result.made = made_text(json);
    result.collapsed_at_batch = number(json, "collapsed_at_batch");
    const Json& fell_back = member(json, "fell_back");
    result.fell_back = !fell_back.is_null() && fell_back.get<bool>();
    if (const Json& transform = member(json, "transform"); transform.is_object()) {
      result.transform = text(transform, "plugin");
      result.transform_order = text(transform, "text_order");
      result.contested = transform.value("contested", false);
      result.untransformed_bpb = number(member(transform, "without"), result.bits ? "bpb" : "loss_nats");
    }
    for (const Json& batch : member(json, "batches")) result.batches.push_back(ttt_batch(batch, result.bits));
    for (const Json& bin : member(json, "length_bins")) {
      result.bins.push_back({number_or(bin, "shortest_tokens", nan), number_or(bin, "longest_tokens", nan),
                             number_or(bin, "documents", nan),
                             score(member(member(bin, "compared"), "with"), result.bits),
                             score(member(member(bin, "compared"), "without"), result.bits)});
    }
    for (const Json& phase : member(json, "phases")) result.phases.push_back(ttt_phase(phase));
    return result;
  });
}

std::vector<EvaluationRecord> read_evaluations(const fs::path& path) {
  std::vector<EvaluationRecord> evaluations;
  read_json_lines(read_file(path), path.string(), [&](const Json& json) {
    evaluations.push_back({json.at("weights").get<std::string>(), json.at("artifact").get<bool>(),
                           text(json, "mode"), number_or(json, "val_loss_nats", nan),
                           number_or(json, "val_bpb", nan), json.at("val_tokens").get<std::uint64_t>(),
                           json.at("val_bytes").get<std::uint64_t>(), number_or(json, "seconds", nan),
                           text(json, "weights_sha256")});
  });
  return evaluations;
}

}  // namespace mulligan::report
