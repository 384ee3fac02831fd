#include "tools/report_page/run_doubts.h"

#include <fmt/format.h>

#include "framework/config/resolved_settings.h"
#include "framework/core/error.h"

namespace mulligan::report {
namespace {

namespace fs = std::filesystem;

class Doubts {
 public:
  explicit Doubts(std::vector<std::string>& found) : found_(found) {}
  void add(const fs::path& file, const std::string& what) {
    found_.push_back(fmt::format("'{}' {}", file.string(), what));
  }
  void look_at(const fs::path& file, Seal seal) {
    if (seal != Seal::intact) add(file, seal_problem(seal));
  }

 private:
  std::vector<std::string>& found_;
};

// Whether both are known and differ.
bool differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

}  // namespace

std::vector<std::string> find_doubts(RunRecord& run, std::string_view config) {
  std::vector<std::string> found;
  Doubts doubts(found);
  const RunFiles& files = run.files;
  if (run.result) doubts.look_at(files.result(), run.result->seal);
  if (run.ledger) doubts.look_at(files.ledger(), run.ledger->seal);
  if (run.quantize) doubts.look_at(files.quantize_result(), run.quantize->seal);
  if (run.ttt) doubts.look_at(files.ttt_result(), run.ttt->seal);
  if (run.result && !config.empty() && differ(run.result->config_sha256, settings_digest(config)))
    doubts.add(files.config(), "holds other settings than those that the run was made with");
  const std::string weights = run.result ? run.result->weights_sha256 : "";
  const std::string artifact = run.quantize ? run.quantize->artifact_sha256 : "";
  if (run.quantize && differ(run.quantize->weights_sha256, weights))
    doubts.add(files.quantize_result(), "is of other weights than the run's");
  if (run.ttt && !weights.empty() && !run.ttt->weights_sha256.empty() && run.ttt->weights_sha256 != weights &&
      run.ttt->weights_sha256 != artifact) {
    doubts.add(files.ttt_result(), "is of weights that are neither the run's nor its artifact");
    run.ttt.reset();
  }
  std::size_t changed = 0;
  std::erase_if(run.evaluations, [&](const EvaluationRecord& score) {
    changed += score.seal != Seal::intact;
    // A score of an earlier artifact stays a line of the file, and is not this run's.
    return score.artifact && differ(score.weights_sha256, artifact);
  });
  if (changed > 0) {
    doubts.add(files.evaluations(),
               fmt::format("has {} line{} without the digest that belongs to {}: {} changed", changed,
                           changed == 1 ? "" : "s", changed == 1 ? "it" : "them",
                           changed == 1 ? "it was" : "they were"));
  }
  return found;
}

std::string doubts_text(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const RunRecord& run : runs) {
    for (const std::string& doubt : run.doubts) text += fmt::format("warning: {}\n", doubt);
  }
  return text.empty() ? text : text + "\n";
}

void require_no_doubts(const std::vector<RunRecord>& runs) {
  for (const RunRecord& run : runs) {
    if (!run.doubts.empty())
      throw data_error("{}; make that result again, or leave the run out.", run.doubts.front());
  }
}

}  // namespace mulligan::report
