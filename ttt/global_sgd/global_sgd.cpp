// The test-time-training plugin `global_sgd`: SGD on the whole model over the documents scored so far.
//
// Learning rate of chunk i of N (the last one is never trained), with w = min(warmup_chunks, N - 1):
//   i < w:  from warmup_start_lr to lr, linear:  start + (lr - start) * i / max(w - 1, 1)
//   else:   lr * (1 + cos(pi * (i - w) / max(N - 1 - w, 1))) / 2
// As in the record: docs/record_run.md#phases.
#include <mulligan/ttt.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mulligan::ttt {
namespace {

struct GlobalSgdConfig {
  double lr = 1e-3;
  double momentum = 0.9;
  double clip_norm = 1.0;
  std::int64_t chunk_tokens = 32768;
  std::int64_t batch_rows = 32;
  std::int64_t epochs = 1;
  bool respect_documents = true;
  std::int64_t warmup_chunks = 0;
  double warmup_start_lr = 0.0;
};

class GlobalSgd : public sdk::BaseUpdate {
 public:
  static constexpr const char* summary =
      "SGD with momentum on the whole model over the documents scored so far";
  static inline const sdk::Schema<GlobalSgdConfig> schema{
      sdk::key("lr", &GlobalSgdConfig::lr, "highest learning rate; falls along a half cosine over the chunks")
          .range(0, 1e3),
      sdk::key("momentum", &GlobalSgdConfig::momentum,
               "decay of the momentum buffer, which starts empty in each pass")
          .range(0, 1),
      sdk::key("clip_norm", &GlobalSgdConfig::clip_norm, "largest global gradient norm; 0: no clipping")
          .range(0, 1e9),
      sdk::key("chunk_tokens", &GlobalSgdConfig::chunk_tokens,
               "tokens trained on at one learning rate; the last chunk is never trained")
          .at_least(1),
      sdk::key("batch_rows", &GlobalSgdConfig::batch_rows,
               "rows of eval.sequence_length tokens per step, at most")
          .range(1, 1 << 20),
      sdk::key("epochs", &GlobalSgdConfig::epochs, "passes over each chunk").range(1, 1000),
      sdk::key("respect_documents", &GlobalSgdConfig::respect_documents,
               "attention stays inside documents; false: rows are plain causal"),
      sdk::key("warmup_chunks", &GlobalSgdConfig::warmup_chunks, "chunks over which the rate rises linearly")
          .range(0, 1 << 20),
      sdk::key("warmup_start_lr", &GlobalSgdConfig::warmup_start_lr,
               "learning rate of the first warm-up chunk")
          .range(0, 1e3)};

  explicit GlobalSgd(const GlobalSgdConfig& config) : config_(config) {}

  sdk::BaseNumbers numbers() const override {
    return {config_.chunk_tokens,      config_.batch_rows, config_.epochs,
            config_.respect_documents, config_.momentum,   config_.clip_norm};
  }

  double rate(std::int64_t index, std::int64_t count) const override {
    const std::int64_t warmup = std::min(config_.warmup_chunks, std::max<std::int64_t>(count - 1, 0));
    if (index < warmup) {
      const double share =
          static_cast<double>(index) / static_cast<double>(std::max<std::int64_t>(warmup - 1, 1));
      return config_.warmup_start_lr + (config_.lr - config_.warmup_start_lr) * share;
    }
    const double share = static_cast<double>(index - warmup) /
                         static_cast<double>(std::max<std::int64_t>(count - 1 - warmup, 1));
    return config_.lr * 0.5 * (1.0 + std::cos(std::numbers::pi * share));
  }

 private:
  GlobalSgdConfig config_;
};

}  // namespace
}  // namespace mulligan::ttt

MULLIGAN_EXPORT_TTT(mulligan::ttt::GlobalSgd, global_sgd);
