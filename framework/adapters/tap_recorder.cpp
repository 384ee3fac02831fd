#include "framework/adapters/tap_recorder.h"

#include "framework/core/error.h"

namespace mulligan {

Value TapRecorder::state(const char*, const TensorType&) {
  throw run_error("the tap {}: a test-time-training plugin keeps nothing but its declared adapters", tap_);
}

void TapRecorder::survives_warmup(mlg_value) {
  throw run_error("the tap {}: a test-time-training plugin has no state that could survive warm-up", tap_);
}

void TapRecorder::check_view(Value value, std::int64_t offset, const TensorType& type) {
  if (rows_) rows_->view(graph(), value, offset, type);
}

void TapRecorder::record(Call call) {
  if (rows_) rows_->call(graph(), call.kernel, call.arguments, call.attributes);
  graph().call(call.kernel, std::move(call.arguments), std::move(call.attributes));
}

void TapRecorder::allow(std::span<const Value> values) {
  for (const Value value : values) {
    if (value) allowed_.insert(value.id);
  }
}

const mlg_recorder& TapRecorder::open(Graph& graph, RowGuard* rows) {
  graph_ = &graph;
  rows_ = rows;
  return *table();
}

Graph& TapRecorder::graph() {
  if (!graph_) {
    throw run_error("the tap {}: the recording is over; a plugin may record only while it is asked to", tap_);
  }
  return *graph_;
}

Value TapRecorder::known(mlg_value value) const {
  if (!allowed_.contains(value)) {
    throw run_error("the tap {}: value {} is not among those that it was handed or has made", tap_, value);
  }
  return Value{value};
}

}  // namespace mulligan
