#include "tools/cost/event_cost.h"

#include <stdexcept>

#include "tools/cost/call_prediction.h"

namespace mulligan {

PredictedRow EventCost::row(const StepEvent& event) const {
  using Kind = StepEvent::Kind;
  PredictedRow row;
  row.calls = 1;
  if (event.kind == Kind::call) {
    const Graph& graph = event.program->graph();
    const Call& call = graph.calls()[event.call];
    const CallPrediction predicted =
        predict_call(graph, call, rehearsal_.access(), rehearsal_.work(event), segment_tokens_, card_);
    row.program = rehearsal_.role_of(event.program);
    row.kernel = call.kernel;
    row.category = cost_category(graph, call, rehearsal_.is_micro_step(event.program));
    row.launches = predicted.launches;
    row.flops = predicted.flops;
    row.bytes_read = predicted.bytes_read;
    row.bytes_written = predicted.bytes_written;
    row.seconds = predicted.seconds;
    return row;
  }
  const auto bytes = static_cast<double>(event.bytes);
  row.program = "between programs";
  row.bytes_written = bytes;
  switch (event.kind) {
    case Kind::zero:
      row.kernel = "memset";
      row.category = "memsets and copies";
      row.seconds = card_.launch_seconds + bytes / card_.sustained_bytes_per_second;
      return row;
    case Kind::copy:
      row.kernel = "copy";
      row.category = "memsets and copies";
      row.bytes_read = bytes;
      row.seconds = card_.launch_seconds + 2 * bytes / card_.sustained_bytes_per_second;
      return row;
    case Kind::upload:
      row.kernel = "upload";
      row.category = "uploads";
      row.seconds = card_.upload_seconds + bytes / card_.upload_bytes_per_second;
      return row;
    default:
      throw std::logic_error("transfers are no work of one card");
  }
}

}  // namespace mulligan
