#include "framework/step/gradient_exchange.h"

#include <fmt/format.h>

#include <bit>

#include "framework/core/error.h"
#include "framework/step/step_graphs.h"

namespace mulligan {
namespace {

constexpr std::int64_t piece_alignment = 64;  // elements: pieces begin where kernels may read whole vectors

std::string pieces_name(const PlannedParameter& parameter) {
  return fmt::format("gradient_pieces/{}", parameter.name());
}
std::string level_name(std::size_t level, std::string_view tensor) {
  return fmt::format("gradient_tree/{}/{}", level, tensor);
}
constexpr const char* loss_pieces = "gradient_pieces/loss_sum";

// to += from, both f32.
void add_values(Graph& graph, Value from, Value to) {
  graph.call("axpby", {from, Value{}, to}, {{"alpha", 1}, {"beta", 0}, {"accumulate_y", 1}});
}

// Adds parts [0], [1], ... of `count` in a tree: neighbours, then neighbours of these; the sum is in part 0.
template <typename AddParts>
void add_in_a_tree(int count, AddParts&& add_parts) {
  for (int distance = 1; distance < count; distance *= 2) {
    for (int part = 0; part + distance < count; part += 2 * distance) add_parts(part + distance, part);
  }
}

std::int64_t piece_elements(const PlannedParameter& parameter, int world_size) {
  const std::int64_t share = (parameter.layout.spec.type.elements() + world_size - 1) / world_size;
  return (share + piece_alignment - 1) / piece_alignment * piece_alignment;
}

void require_tree(const RunConfig& config, const std::vector<PlannedParameter>& parameters, int world_size) {
  const auto refuse = [](const std::string& why) {
    throw config_error("run.determinism = \"world\" {}; or set \"run\" for bit-identical repetitions.", why);
  };
  for (const Phase& phase : config.phases) {
    if (!std::has_single_bit(static_cast<std::uint64_t>(phase.micro_batches)) ||
        !std::has_single_bit(static_cast<unsigned>(world_size))) {
      refuse(fmt::format(
          "adds gradients in a binary tree, which {} micro-batches{} on {} ranks do not make; choose powers "
          "of two",
          phase.micro_batches,
          phase.micro_batches == config.train.micro_batches ? "" : " of phase '" + phase.name + "'",
          world_size));
    }
    if (phase.compute_dtype != MLG_F32) {
      refuse(fmt::format("needs fp32, and phase '{}' computes in bf16; set its compute_dtype", phase.name));
    }
  }
  if (clips_before_reduction(config.train) && !clips_each_micro_batch(config.train)) {
    refuse(
        "cannot clip what each rank has by itself; set train.clip_order = \"after_reduction\" or \"each_micro_batch\"");
  }
  for (const PlannedParameter& parameter : parameters) {
    if (!parameter.trained() || parameter.communication_dtype == MLG_F32) continue;
    refuse(fmt::format("needs gradients to travel in fp32; set communication_dtype of the row of '{}'",
                       parameter.name()));
  }
}

// Of a step, in any phase.
std::int64_t most_micro_batches(const RunConfig& config) {
  std::int64_t most = config.train.micro_batches;
  for (const Phase& phase : config.phases) most = std::max(most, phase.micro_batches);
  return most;
}

}  // namespace

GradientLevel::GradientLevel(const std::vector<PlannedParameter>& parameters, TensorStore& store,
                             std::size_t level)
    : parameters_(parameters), store_(store), level_(level) {
  const TensorType one(MLG_F64, {1});
  Graph graph;
  for (const PlannedParameter& parameter : parameters_) {
    if (!parameter.trained()) continue;
    const TensorType type = parameter.layout.spec.type;
    add_values(graph, graph.external(level_name(level, parameter.name()), type),
               graph.external(gradient_name(parameter.name()), type));
  }
  graph.call("sum_f64", {graph.external(level_name(level, "loss_sum"), one),
                         graph.external(step_tensor::loss_sum, one)});
  program_ = make_program(store_, std::move(graph), "add a level of the gradients' tree");
}

void GradientLevel::keep() {
  for (const PlannedParameter& parameter : parameters_) {
    if (parameter.trained())
      store_.copy(level_name(level_, parameter.name()), gradient_name(parameter.name()));
  }
  store_.copy(level_name(level_, "loss_sum"), step_tensor::loss_sum);
}

GradientTree::GradientTree(const RunConfig& config, const std::vector<PlannedParameter>& parameters,
                           TensorStore& store, int world_size)
    : parameters_(parameters), store_(store), world_size_(world_size) {
  require_tree(config, parameters, world_size);
  declare_levels(most_micro_batches(config) / world_size);
  if (world_size > 1) declare_pieces();
}

std::vector<Program*> GradientTree::programs() const {
  std::vector<Program*> all;
  for (const GradientLevel& level : levels_) all.push_back(&level.program());
  if (add_pieces_) all.push_back(add_pieces_.get());
  return all;
}

void GradientTree::declare_levels(std::int64_t leaves) {
  const auto count = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(leaves))) - 1;
  for (std::size_t level = 0; level < count; ++level) levels_.emplace_back(parameters_, store_, level);
}

// Of each gradient, rank r adds up the pieces [r] of all ranks.
void GradientTree::declare_pieces() {
  const TensorType one(MLG_F64, {1});
  Graph graph;
  for (const PlannedParameter& parameter : parameters_) {
    if (!parameter.trained()) continue;
    const std::int64_t piece = piece_elements(parameter, world_size_);
    store_.reserve(gradient_name(parameter.name()), piece * world_size_ * dtype_size(MLG_F32));
    const Value pieces = graph.external(pieces_name(parameter), TensorType(MLG_F32, {piece * world_size_}));
    add_in_a_tree(world_size_, [&](int from, int to) {
      add_values(graph, graph.view(pieces, from * piece, TensorType(MLG_F32, {piece})),
                 graph.view(pieces, to * piece, TensorType(MLG_F32, {piece})));
    });
  }
  const Value losses = graph.external(loss_pieces, TensorType(MLG_F64, {world_size_}));
  add_in_a_tree(world_size_, [&](int from, int to) {
    graph.call("sum_f64", {graph.view(losses, from, one), graph.view(losses, to, one)});
  });
  add_pieces_ = make_program(store_, std::move(graph), "add the ranks' pieces of the gradients");
}

void GradientTree::prepare(Communicator& communicator) {
  if (world_size_ == 1) return;
  std::vector<Transfer> deal, share;
  for (const PlannedParameter& parameter : parameters_) {
    if (!parameter.trained()) continue;
    const std::string gradient = gradient_name(parameter.name()), pieces = pieces_name(parameter);
    const std::int64_t piece = piece_elements(parameter, world_size_);
    deal.push_back({Collective::all_to_all, gradient, pieces, piece});
    share.push_back({Collective::all_gather, pieces, gradient, piece});
  }
  deal.push_back({Collective::all_gather, step_tensor::loss_sum, loss_pieces, 1});
  deal_ = communicator.prepare(store_, std::move(deal));
  share_ = communicator.prepare(store_, std::move(share));
}

void GradientTree::require_leaves(std::int64_t count) const {
  if (!std::has_single_bit(static_cast<std::uint64_t>(count))) {
    throw config_error(
        "run.determinism = \"world\" adds gradients in a binary tree, and the schedule "
        "asks for {} micro-batches on each rank; let its batch factor be a power of two.",
        count);
  }
  if (count > std::int64_t{1} << levels_.size()) {
    throw config_error(
        "run.determinism = \"world\" has made its tree for {} micro-batches on each rank, and the schedule "
        "asks for {}; raise train.micro_batches and let the schedule begin with less.",
        std::int64_t{1} << levels_.size(), count);
  }
}

// A binary counter: level l keeps the sum of 2^l leaves until its neighbour is complete, too.
void GradientTree::add_leaf(std::int64_t micro, std::int64_t count) {
  std::size_t level = 0;
  for (auto rest = static_cast<std::uint64_t>(micro); rest & 1; rest >>= 1) levels_.at(level++).add();
  if (micro + 1 == count) return;
  levels_.at(level).keep();
}

void GradientTree::reduce() {
  if (world_size_ == 1) return;
  deal_->run();
  add_pieces_->run();
  share_->run();
  store_.backend().copy(store_.address(step_tensor::loss_sum), store_.address(loss_pieces), sizeof(double));
}

}  // namespace mulligan
