#include "plugins/backends/cuda/gpu/cudnn/attention_plan.h"

#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

namespace mulligan::cuda::cudnn {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void* address_of(const AttentionArguments& a, std::int64_t id) {
  // In the order of AttentionTensor.
  const DeviceArgument* const all[] = {&a.q,         &a.k,
                                       &a.v,         &a.o,
                                       &a.stats,     &a.d_o,
                                       &a.dq,        &a.dk,
                                       &a.dv,        &a.query_starts,
                                       &a.kv_starts, &a.stats_starts,
                                       &a.lengths};
  static_assert(kQ == 1 && kLengths == std::size(all));
  return all[id - kQ]->address;
}

std::size_t piece_bytes(const AttentionGraph::Piece& piece, std::int64_t tokens) {
  return aligned(static_cast<std::size_t>(piece.floats_of_token * tokens) * sizeof(float));
}

std::vector<Descriptor> proposals(const Functions& functions, const Target& target, const Descriptor& graph) {
  Descriptor heuristics(functions, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  if (target.device) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device);
  heuristics.finalize();
  return heuristics.held(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

}  // namespace

AttentionPlan::AttentionPlan(AttentionGraph graph, Descriptor operations, Descriptor plan,
                             std::size_t own_bytes, double scale)
    : graph_(std::move(graph)),
      operations_(std::move(operations)),
      plan_(std::move(plan)),
      own_bytes_(aligned(own_bytes)),
      scale_(static_cast<float>(scale)) {}

std::size_t AttentionPlan::workspace_bytes(std::int64_t tokens) const {
  std::size_t bytes = own_bytes_;
  for (const AttentionGraph::Piece& piece : graph_.workspace) bytes += piece_bytes(piece, tokens);
  return bytes;
}

Descriptor AttentionPlan::pack(const Functions& functions, const AttentionArguments& arguments,
                               std::int64_t tokens, void* workspace) const {
  static constexpr float one = 1, hidden = -std::numeric_limits<float>::infinity();
  std::vector<std::int64_t> ids;
  std::vector<void*> addresses;
  const auto name = [&](std::int64_t id, const void* address) {
    if (!address)
      throw std::runtime_error("attention by cuDNN got no address for tensor " + std::to_string(id));
    ids.push_back(id);
    addresses.push_back(const_cast<void*>(address));
  };
  for (const std::int64_t id : graph_.used) name(id, address_of(arguments, id));
  char* place = static_cast<char*>(workspace) + own_bytes_;
  for (const AttentionGraph::Piece& piece : graph_.workspace) {
    name(piece.id, place);
    place += piece_bytes(piece, tokens);
  }
  for (const std::int64_t id : graph_.numbers) name(id, id == kScale ? &scale_ : id == kOne ? &one : &hidden);
  Descriptor pack(functions, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(addresses));
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  return pack;
}

// A plan's own part, with cuDNN 9.19: up to 449 bytes for each row, of which there are at most 5 for 256
// tokens, or 64. Where another cuDNN needs more, the own kernel computes the call, with a warning in the log.
std::size_t attention_workspace_bytes(const AttentionShape& s) {
  std::size_t bytes = (std::size_t{1} << 20) + 16 * static_cast<std::size_t>(s.tokens);
  if (!s.backward) return bytes;
  const std::int64_t sum_d = s.query_heads, each = s.query_heads * s.width;
  for (const std::int64_t floats_of_token : {sum_d, each, each, each})
    bytes += piece_bytes({0, floats_of_token}, s.tokens);
  return bytes;
}

std::optional<AttentionPlan> make_attention_plan(const Functions& functions, const Target& target,
                                                 const AttentionShape& shape, std::string& reason) {
  std::string said = "it proposes no engine";
  try {
    AttentionGraph graph = attention_graph(functions, shape);
    Descriptor operations = graph.graph.finish(target.handle);
    for (const Descriptor& engine : proposals(functions, target, operations)) {
      try {
        Descriptor plan(functions, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
        if (target.handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
        plan.finalize();
        const std::int64_t bytes = plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        return AttentionPlan(std::move(graph), std::move(operations), std::move(plan),
                             static_cast<std::size_t>(bytes), shape.scale);
      } catch (const std::runtime_error& refused) {
        said = refused.what();  // the next engine may take it
      }
    }
  } catch (const std::runtime_error& refused) {
    said = refused.what();
  }
  reason = "cuDNN " + functions.version() + " has no plan for it: " + said;
  return std::nullopt;
}

}  // namespace mulligan::cuda::cudnn
