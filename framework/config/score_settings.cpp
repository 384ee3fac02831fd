#include "framework/config/score_settings.h"

#include "framework/config/config_report.h"

namespace mulligan {

bool moves_score(std::string_view key, ScoreCommand command) {
  for (const char* idle : {"data.train", "data.prefetch", "data.exact_vocabulary", "backend.threads",
                           "eval.save_seconds", "eval.batch_rows", "ttt.audit"}) {
    if (key == idle) return false;
  }
  if (key == "train.compute_dtype" || key == "train.layercast") return true;
  for (const char* table : {"data.", "model.", "eval.", "backend.", "phase."}) {
    if (key.starts_with(table)) return true;
  }
  if (command == ScoreCommand::eval) return false;
  return key.starts_with("ttt.") || key == "run.seed";
}

std::map<std::string, std::string> score_settings(const LoadedConfig& loaded, ScoreCommand command) {
  std::map<std::string, std::string> settings = flat_settings(loaded);
  std::erase_if(settings, [&](const auto& setting) { return !moves_score(setting.first, command); });
  return settings;
}

}  // namespace mulligan
