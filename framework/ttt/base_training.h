// BaseTraining: trains the whole model on documents that were scored, between two batches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/data/segments.h"
#include "framework/graph/program.h"
#include "framework/model/packed_inputs.h"
#include "framework/plugin/optimizer.h"
#include "framework/plugin/ttt.h"
#include "framework/ttt/window_program.h"

namespace mulligan {

// One optimiser step of a pass.
struct BaseStep {
  double lr = 0;
  double loss_nats = 0;      // mean over the step's tokens, before the update
  double gradient_norm = 0;  // before clipping
};

class BaseTraining {
 public:
  // Plans the programs. `plugin` supplies sizes and rates, `optimizer` (with the plugin's momentum) the
  // update of every parameter; rows have `row_tokens` tokens. All references must outlive this object. Throws
  // config_error when the plugin's numbers cannot be used.
  BaseTraining(const BaseModel& model, const TttPlugin& plugin, const Optimizer& optimizer,
               std::int64_t row_tokens, int bos_id);

  // To be bound before anything runs.
  std::vector<Program*> programs() { return {step_.get(), clip_.get(), update_.get()}; }

  // Trains on the targets tokens[1..], in chunks, the last of which is never trained: with one chunk nothing
  // happens. Starts with empty optimiser state; leaves the compute copies up to date. Rows of a chunk that do
  // not fill `row_tokens` are left out.
  std::vector<BaseStep> run(std::span<const std::uint16_t> tokens);

 private:
  BaseStep step(std::span<const std::uint16_t> tokens, std::int64_t start, std::int64_t rows, double lr);
  void upload_rows(std::span<const std::uint16_t> tokens, std::int64_t start, std::int64_t rows);
  Graph build_step() const;
  Graph build_clip() const;
  Graph build_update();
  // Of the programs: no step takes rows of two chunks.
  std::int64_t step_rows() const {
    return std::min(numbers_.batch_rows, numbers_.chunk_tokens / row_tokens_);
  }
  std::int64_t step_tokens() const { return step_rows() * row_tokens_; }
  std::int64_t positions() const { return numbers_.respect_documents ? step_tokens() : row_tokens_; }

  const BaseModel& model_;
  const TttPlugin& plugin_;
  const Optimizer& optimizer_;
  mlg_base_update numbers_;
  std::vector<ParameterLayout> trained_;  // those of which the loss has a gradient
  std::int64_t row_tokens_;
  int bos_id_;
  std::unique_ptr<Program> step_, clip_, update_;
  PackedInputWriter inputs_;
  std::vector<std::string> states_;  // of the optimiser
  std::vector<float> scalars_, weights_, losses_;
  Batch row_;
  std::int64_t updates_ = 0;  // in this pass
};

}  // namespace mulligan
