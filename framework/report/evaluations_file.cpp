#include "framework/report/evaluations_file.h"

#include <nlohmann/json.hpp>

#include "framework/core/file.h"

namespace mulligan {

void add_evaluation(const std::filesystem::path& path, const EvaluationRecord& record) {
  std::string text;
  if (std::filesystem::exists(path)) text = read_file(path);
  // The whole file anew, so that it never holds half a line.
  using Json = nlohmann::ordered_json;
  const Json json{{"weights", record.weights},     {"artifact", record.artifact},
                  {"mode", record.mode},           {"val_loss_nats", record.val_loss_nats},
                  {"val_bpb", record.val_bpb},     {"val_tokens", record.val_tokens},
                  {"val_bytes", record.val_bytes}, {"seconds", record.seconds}};
  write_file_atomically(path, text + json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace mulligan
