// The recorder for test-time-training plugins. It knows only the values of one tap.
#pragma once

#include <mulligan/recorder.h>

#include <set>
#include <span>
#include <string>

#include "framework/adapters/row_guard.h"
#include "framework/graph/graph.h"

namespace mulligan {

// Stands between a plugin and the Graph. Launches may name the allowed values and the plugin's own values. Anything else is
// refused with a sentence: token ids, targets, losses, other taps, persistent states, and every call outside of open() ...
// close(). Must live as long as a plugin could call it.
class TapRecorder {
 public:
  // `tap`: for messages, "q of slot 3".
  explicit TapRecorder(std::string tap);
  TapRecorder(const TapRecorder&) = delete;
  TapRecorder& operator=(const TapRecorder&) = delete;

  void allow(std::span<const Value> values);
  // With `rows` every view and launch must keep the rows of tokens apart (a recording that scores).
  const mlg_recorder& open(Graph& graph, RowGuard* rows = nullptr);
  void close() { graph_ = nullptr; }

 private:
  template <typename Body>
  static mlg_error guarded(void* self, Body&& body);
  Graph& graph() const;
  Value known(mlg_value value) const;

  std::string tap_;
  Graph* graph_ = nullptr;  // null: closed
  RowGuard* rows_ = nullptr;
  std::set<std::uint32_t> allowed_;
  std::string error_;
  mlg_recorder table_{};
};

}  // namespace mulligan
