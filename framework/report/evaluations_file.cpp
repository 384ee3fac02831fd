#include "framework/report/evaluations_file.h"

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/sealed_json.h"

namespace mulligan {

nlohmann::ordered_json evaluation_json(const EvaluationRecord& record) {
  return {{"weights", record.weights},       {"weights_sha256", record.weights_sha256},
          {"artifact", record.artifact},     {"mode", record.mode},
          {"val_bpb", record.val_bpb},       {"val_loss_nats", record.val_loss_nats},
          {"val_tokens", record.val_tokens}, {"val_bytes", record.val_bytes},
          {"seconds", record.seconds}};
}

void add_evaluation(const std::filesystem::path& path, const EvaluationRecord& record) {
  std::string text;
  if (std::filesystem::exists(path)) text = read_file(path);
  // The whole file anew, so that it never holds half a line.
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  write_file_atomically(path, text + sealed(evaluation_json(record)).dump(-1, ' ', false, replace) + "\n");
}

}  // namespace mulligan
