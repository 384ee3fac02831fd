#include "framework/config/ensemble_config.h"

#include "framework/config/schema.h"

namespace mulligan {
namespace {

const Schema<EnsembleOptions>& ensemble_schema() {
  static const Schema<EnsembleOptions> schema = [] {
    Schema<EnsembleOptions> s;
    s.key("members", &EnsembleOptions::members, "models whose probabilities are averaged").range(1, 1 << 16);
    s.key("seed", &EnsembleOptions::seed, "seed of the members' random numbers, independent of run.seed")
        .at_least(0);
    s.key("chunk_mebibytes", &EnsembleOptions::chunk_mebibytes,
          "host memory for averaged probabilities, which bounds how many "
          "tokens all members score before the next; no score depends on it")
        .range(1, 1 << 20);
    s.key("count_members", &EnsembleOptions::count_members,
          "the bytes of all members, stored, count against ledger.artifact_bytes; without it "
          "ledger.rules = \"strict\" refuses an ensemble");
    return s;
  }();
  return schema;
}

}  // namespace

std::vector<KeySpec> ensemble_host_keys() {
  return ensemble_schema().keys();
}

EnsembleSection read_ensemble(const ConfigNode* table, const std::string& source) {
  EnsembleSection section;
  section.table = read_plugin_table(table, "ensemble", source, "stochastic_rounding", ensemble_host_keys());
  ensemble_schema().store(section.table.host, section.options);
  return section;
}

}  // namespace mulligan
