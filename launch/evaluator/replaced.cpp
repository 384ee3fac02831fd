// Functions that an evaluation defines differently from mulligan. Each replaces the function of the same qualified name. They omit checks
// of plugins and kernels, reports, other ranks, resuming, and messages about tokenizers of other programs.
#include "framework/adapters/row_guard.h"
#include "framework/check/transform_probe.h"
#include "framework/core/parallel.h"
#include "framework/core/parse_json.h"
#include "framework/core/stop_request.h"
#include "framework/data/data_identity.h"
#include "framework/data/exact_encoding.h"
#include "framework/data/tokenizer.h"
#include "framework/run/device_memory.h"
#include "framework/ttt/causality.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {

void RowGuard::write(const Graph&, Value, bool, const std::string&) {}
void RowGuard::view(const Graph&, Value, std::int64_t, const TensorType&) const {}
void RowGuard::call(const Graph&, const Call&) {}

std::string transform_problem(const Transform&, std::int64_t, std::size_t) {
  return {};
}
void probe_causality(AdapterSet&, const BaseModel&, const TttPlugin&) {}
SuffixCheck::SuffixCheck(TttCheck, bool, const DocumentPlan&, std::int64_t, std::int64_t) {}
std::vector<SuffixCheck::Pass> SuffixCheck::passes(std::int64_t, std::int64_t, const WindowShape&,
                                                   std::span<const ChunkWindow>,
                                                   std::span<const std::int32_t>,
                                                   std::span<const std::int32_t>) const {
  return {};
}
void SuffixCheck::compare(std::int64_t, std::int64_t, const Pass&, const Scores&, const Scores&) {}

void TttScorer::report_batch(std::int64_t, AdapterSet&, double) {}
void TttScorer::report_stretch(const LanePlan::Stretch&) {}
void TttScorer::report_run() {}
void TttScorer::tell(TttEvent) {}
void TttScorer::tell(TttEventKind, const Turn&, bool, std::string) {}
std::vector<AdapterNorm> AdapterSet::norms() {
  return {};
}
std::string AdaptationRule::text(const ChunkChoice&, const std::vector<std::size_t>&) const {
  return {};
}
std::string AdaptationRule::text(const AdapterSet::Inheritance&) const {
  return {};
}

void throw_if_stopping() {}
std::string Origin::text() const {
  return {};
}

void Backend::replace_known_kernels() {}
std::string Plugin::description() const {
  return name();
}
Backend::Info Backend::info() const {
  return {};
}
mlg_work Backend::work(void*) const {
  return {};
}
std::vector<std::pair<std::string, std::uint64_t>> Backend::made() const {
  return {};
}
// Kernels have a member of this name. Nothing else calls it.
void parallel_for(std::size_t, int, const std::function<void(std::size_t)>&) {}

DeviceMemory memory_of(const TensorStore&, const std::vector<Program*>&) {
  return {};
}
void require_memory(const DeviceMemory&, const Backend&, std::string_view, std::string_view) {}

std::string foreign_tokenizer_format(std::string_view) {
  return {};
}
std::string character_map_problem(std::string_view) {
  return {};
}
ModelRules model_rules(std::string_view) {
  return {};
}
void SafeCuts::add_piece(std::string_view) {}
// An evaluation compares the tokenizer and the byte tables.
DataIdentity data_identity_from_json(const nlohmann::ordered_json& json, const std::string&) {
  return {json.value("tokenizer_sha256", ""), json.value("byte_table_sha256", "")};
}

}  // namespace mulligan
