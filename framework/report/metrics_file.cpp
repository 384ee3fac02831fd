#include "framework/report/metrics_file.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"

namespace mulligan {

using Json = nlohmann::ordered_json;  // nlohmann writes numbers that are not finite as null

MetricsFile::MetricsFile(const std::filesystem::path& path)
    : path_(path), file_(std::fopen(path.c_str(), "w")) {
  if (!file_)
    throw run_error("the metrics file '{}' cannot be written: {}.", path.string(), std::strerror(errno));
}

void MetricsFile::write(const std::string& line) {
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                       std::fputc('\n', file_.get()) != EOF && std::fflush(file_.get()) == 0;
  if (!written) {
    throw run_error("the metrics file '{}' cannot be written: {}.", path_.string(), std::strerror(errno));
  }
}

void MetricsFile::step(const StepRecord& record) {
  Json lr = Json::object();
  for (const auto& [name, rate] : record.lr) lr[name] = rate;
  write(Json{{"event", "step"},
             {"step", record.step},
             {"loss_nats", record.loss_nats},
             {"window", {record.window_first, record.window_last}},
             {"window_loss_nats", record.window_loss_nats},
             {"gradient_norm", record.gradient_norm},
             {"lr", lr},
             {"tokens", record.tokens},
             {"tokens_per_second", record.tokens_per_second},
             {"elapsed_seconds", record.elapsed_seconds},
             {"budget_fraction", record.budget_fraction},
             {"looping", record.looping}}
            .dump());
}

void MetricsFile::validation(const ValidationRecord& record) {
  write(Json{{"event", "validation"},
             {"step", record.step},
             {"val_loss_nats", record.val_loss_nats},
             {"val_bpb", record.val_bpb},
             {"val_tokens", record.val_tokens},
             {"val_bytes", record.val_bytes},
             {"seconds", record.seconds}}
            .dump());
}

void MetricsFile::restart(std::int64_t step, const std::string& optimizer, std::int64_t cycle, double lr) {
  write(Json{{"event", "restart"}, {"step", step}, {"optimizer", optimizer}, {"cycle", cycle}, {"lr", lr}}
            .dump());
}

void MetricsFile::loop_start(std::int64_t step, double budget_fraction) {
  write(Json{{"event", "loop_start"}, {"step", step}, {"budget_fraction", budget_fraction}}.dump());
}

void MetricsFile::initial_loss(double loss_nats, double ln_vocabulary) {
  write(Json{{"event", "initial_loss"}, {"loss_nats", loss_nats}, {"ln_vocabulary", ln_vocabulary}}.dump());
}

}  // namespace mulligan
