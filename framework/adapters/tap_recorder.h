// The recorder for test-time-training plugins. It knows only the values of one tap.
#pragma once

#include <set>
#include <span>
#include <string>

#include "framework/adapters/row_guard.h"
#include "framework/graph/graph_recorder.h"

namespace mulligan {

// Stands between a plugin and the Graph. Launches may name the allowed values and the plugin's own values. Anything else is
// refused with a sentence: token ids, targets, losses, other taps, persistent states, and every call outside of open() ...
// close(). Must live as long as a plugin could call it.
class TapRecorder final : public PluginRecorder {
 public:
  // `tap`: for messages, "q of slot 3".
  explicit TapRecorder(std::string tap) : PluginRecorder("adapter"), tap_(std::move(tap)) {}

  void allow(std::span<const Value> values);
  // With `rows` every view and launch must keep the rows of tokens apart (a recording that scores).
  const mlg_recorder& open(Graph& graph, RowGuard* rows = nullptr);
  void close() { graph_ = nullptr; }

 private:
  Graph& graph() override;
  Value known(mlg_value value) const override;
  void made(Value value) override { allowed_.insert(value.id); }
  Value state(const char* name, const TensorType& type) override;
  void survives_warmup(mlg_value value) override;
  void check_view(Value value, std::int64_t offset, const TensorType& type) override;
  void record(Call call) override;

  std::string tap_;
  Graph* graph_ = nullptr;  // null: closed
  RowGuard* rows_ = nullptr;
  std::set<std::uint32_t> allowed_;
};

}  // namespace mulligan
