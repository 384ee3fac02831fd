#include "framework/step/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "framework/core/error.h"
#include "framework/step/step_graphs.h"

namespace mulligan {
namespace {

constexpr std::int64_t piece_alignment = 64;  // elements: pieces begin where kernels may read whole vectors

std::string carried_name(const PlannedParameter& parameter) {
  return fmt::format("carried_gradient/{}", parameter.name());
}
std::string carried_slice_name(const PlannedParameter& parameter) {
  return fmt::format("carried_slice/{}", parameter.name());
}
std::string pieces_name(const PlannedParameter& parameter) {
  return fmt::format("gradient_pieces/{}", parameter.name());
}
std::string level_name(std::size_t level, std::string_view tensor) {
  return fmt::format("gradient_tree/{}/{}", level, tensor);
}
constexpr const char* loss_pieces = "gradient_pieces/loss_sum";

TensorType gradient_type(const PlannedParameter& parameter) {
  return parameter.layout.spec.type;
}

// to += from, both f32.
void add(Graph& graph, Value from, Value to) {
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
  const std::int64_t share = (gradient_type(parameter).elements() + world_size - 1) / world_size;
  return (share + piece_alignment - 1) / piece_alignment * piece_alignment;
}

void require_tree(const RunConfig& config, const std::vector<PlannedParameter>& parameters, int world_size) {
  const auto refuse = [](const std::string& why) {
    throw config_error("run.determinism = \"world\" {}; or set \"run\" for bit-identical repetitions.", why);
  };
  if (!std::has_single_bit(static_cast<std::uint64_t>(config.train.micro_batches)) ||
      !std::has_single_bit(static_cast<unsigned>(world_size))) {
    refuse(fmt::format(
        "adds gradients in a binary tree, which {} micro-batches on {} ranks do not make; choose powers "
        "of two",
        config.train.micro_batches, world_size));
  }
  for (const Phase& phase : config.phases) {
    if (phase.compute_dtype != Precision::fp32) {
      refuse(fmt::format("needs fp32, and phase '{}' computes in bf16; set its compute_dtype", phase.name));
    }
  }
  if (clips_before_reduction(config.train)) {
    refuse("cannot clip what each rank has by itself; set train.clip_order = \"after_reduction\"");
  }
  for (const PlannedParameter& parameter : parameters) {
    if (parameter.communication_dtype == MLG_F32) continue;
    refuse(fmt::format("needs gradients to travel in fp32; set communication_dtype of the row of '{}'",
                       parameter.name()));
  }
}

}  // namespace

GradientExchange::GradientExchange(const RunConfig& config, Backend& backend,
                                   const std::vector<PlannedParameter>& parameters, TensorStore& store,
                                   int world_size)
    : backend_(backend),
      parameters_(parameters),
      store_(store),
      world_size_(world_size),
      tree_(config.run.determinism == Determinism::world) {
  if (tree_) require_tree(config, parameters, world_size);
  declare_slices();
  if (tree_) {
    declare_tree(config.train.micro_batches / world_size);
    return;
  }
  declare_carried();
  if (!slices_.empty() && !clips_before_reduction(config.train)) {
    Graph graph;
    const auto optimizers = static_cast<std::int64_t>(config.optimizers.size());
    const Value sums = graph.external(step_tensor::slice_squares, TensorType(MLG_F64, {optimizers}));
    for (const Slice& slice : slices_) {
      const PlannedParameter& parameter = parameters[slice.parameter];
      graph.call(
          "sum_squares_f64",
          {graph.external(parameter.updated_gradient(world_size), parameter.updated_type(world_size)),
           graph.view(sums, static_cast<std::int64_t>(parameter.optimizer), TensorType(MLG_F64, {1}))});
    }
    measure_ = program(std::move(graph), "squares of the gradients' slices");
  }
}

GradientExchange::~GradientExchange() = default;

std::unique_ptr<Program> GradientExchange::program(Graph graph, const char* name) {
  store_.create_externals(graph);
  return std::make_unique<Program>(backend_, std::move(graph), name);
}

std::vector<Program*> GradientExchange::programs() const {
  std::vector<Program*> all;
  for (const auto& level : levels_) all.push_back(level.get());
  for (const auto* one : {&pack_, &unpack_, &add_pieces_, &measure_}) {
    if (*one) all.push_back(one->get());
  }
  return all;
}

void GradientExchange::declare_slices() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const PlannedParameter& parameter = parameters_[i];
    const TensorType whole = gradient_type(parameter);
    store_.create(gradient_name(parameter.name()), whole);
    store_.create(master_name(parameter.name()), whole.as(parameter.layout.master));
    if (parameter.updated_master(world_size_) == master_name(parameter.name())) continue;
    const TensorType slice = parameter.updated_type(world_size_);
    store_.create(parameter.updated_gradient(world_size_), slice);
    store_.create(parameter.updated_master(world_size_), slice.as(parameter.layout.master));
    store_.reserve(gradient_name(parameter.name()), slice.bytes() * world_size_);
    store_.reserve(master_name(parameter.name()), slice.as(parameter.layout.master).bytes() * world_size_);
    slices_.push_back({i, slice.elements(), nullptr});
  }
}

// Copies of gradients in the dtype in which they travel.
void GradientExchange::declare_carried() {
  if (world_size_ == 1) return;
  Graph pack, unpack;
  for (const PlannedParameter& parameter : parameters_) {
    if (parameter.communication_dtype == MLG_F32) continue;
    const TensorType whole = gradient_type(parameter), slice = parameter.updated_type(world_size_);
    const TensorType carried = whole.as(parameter.communication_dtype);
    const Value gradient = pack.external(gradient_name(parameter.name()), whole);
    pack.call("cast", {gradient, pack.external(carried_name(parameter), carried)});
    const bool cut = slice != whole || parameter.updated_master(world_size_) != master_name(parameter.name());
    const std::string arrived = cut ? carried_slice_name(parameter) : carried_name(parameter);
    unpack.call("cast", {unpack.external(arrived, slice.as(parameter.communication_dtype)),
                         unpack.external(parameter.updated_gradient(world_size_), slice)});
    store_.create(carried_name(parameter), carried);
    store_.reserve(carried_name(parameter), slice.as(parameter.communication_dtype).bytes() * world_size_);
  }
  if (pack.calls().empty()) return;
  pack_ = program(std::move(pack), "gradients into the dtype they travel in");
  unpack_ = program(std::move(unpack), "gradients from the dtype they travelled in");
}

// Of each gradient, rank r adds up the pieces [r] of all ranks.
void GradientExchange::declare_tree(std::int64_t leaves) {
  const TensorType one(MLG_F64, {1});
  for (std::size_t level = 0;
       level < static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(leaves))) - 1; ++level) {
    Graph graph;
    for (const PlannedParameter& parameter : parameters_) {
      const TensorType type = gradient_type(parameter);
      add(graph, graph.external(level_name(level, parameter.name()), type),
          graph.external(gradient_name(parameter.name()), type));
    }
    graph.call("sum_f64", {graph.external(level_name(level, "loss_sum"), one),
                           graph.external(step_tensor::loss_sum, one)});
    levels_.push_back(program(std::move(graph), "add a level of the gradients' tree"));
  }
  if (world_size_ == 1) return;
  Graph graph;
  for (const PlannedParameter& parameter : parameters_) {
    const std::int64_t piece = piece_elements(parameter, world_size_);
    store_.reserve(gradient_name(parameter.name()), piece * world_size_ * dtype_size(MLG_F32));
    const Value pieces = graph.external(pieces_name(parameter), TensorType(MLG_F32, {piece * world_size_}));
    add_in_a_tree(world_size_, [&](int from, int to) {
      add(graph, graph.view(pieces, from * piece, TensorType(MLG_F32, {piece})),
          graph.view(pieces, to * piece, TensorType(MLG_F32, {piece})));
    });
  }
  const Value losses = graph.external(loss_pieces, TensorType(MLG_F64, {world_size_}));
  add_in_a_tree(world_size_, [&](int from, int to) {
    graph.call("sum_f64", {graph.view(losses, from, one), graph.view(losses, to, one)});
  });
  add_pieces_ = program(std::move(graph), "add the ranks' pieces of the gradients");
}

void GradientExchange::make_tree_transfers(Communicator& communicator) {
  if (world_size_ == 1) return;
  std::vector<Transfer> deal, share;
  for (const PlannedParameter& parameter : parameters_) {
    const std::string gradient = gradient_name(parameter.name()), pieces = pieces_name(parameter);
    const std::int64_t piece = piece_elements(parameter, world_size_);
    deal.push_back({Collective::all_to_all, gradient, pieces, piece});
    share.push_back({Collective::all_gather, pieces, gradient, piece});
  }
  deal.push_back({Collective::all_gather, step_tensor::loss_sum, loss_pieces, 1});
  reduce_ = communicator.prepare(store_, std::move(deal));
  share_ = communicator.prepare(store_, std::move(share));
}

void GradientExchange::prepare(Communicator& communicator) {
  rank_ = communicator.rank();
  for (Slice& slice : slices_) {
    const PlannedParameter& parameter = parameters_[slice.parameter];
    slice.gather =
        communicator.prepare(store_, {{Collective::all_gather, parameter.updated_master(world_size_),
                                       master_name(parameter.name()), slice.elements}});
  }
  if (tree_) {
    make_tree_transfers(communicator);
    return;
  }
  std::vector<Transfer> reduce;
  for (const PlannedParameter& parameter : parameters_) {
    const bool carried = world_size_ > 1 && parameter.communication_dtype != MLG_F32;
    const std::string gradient = carried ? carried_name(parameter) : gradient_name(parameter.name());
    if (parameter.updated_gradient(world_size_) == gradient_name(parameter.name())) {
      reduce.push_back({Collective::all_reduce, gradient, gradient, gradient_type(parameter).elements()});
    } else {
      reduce.push_back({Collective::reduce_scatter, gradient,
                        carried ? carried_slice_name(parameter) : parameter.updated_gradient(world_size_),
                        parameter.updated_type(world_size_).elements()});
    }
  }
  reduce.push_back({Collective::all_reduce, step_tensor::loss_sum, step_tensor::loss_sum, 1});
  reduce_ = communicator.prepare(store_, std::move(reduce));
  if (!measure_) return;
  const std::int64_t optimizers = store_.type(step_tensor::slice_squares).elements();
  squares_ = communicator.prepare(
      store_, {{Collective::all_reduce, step_tensor::slice_squares, step_tensor::slice_squares, optimizers}});
}

// A binary counter: level l keeps the sum of 2^l leaves until its neighbour is complete, too.
void GradientExchange::add_leaf(std::int64_t micro, std::int64_t count) {
  if (!std::has_single_bit(static_cast<std::uint64_t>(count))) {
    throw config_error(
        "run.determinism = \"world\" adds gradients in a binary tree, and the schedule asks for {} "
        "micro-batches on "
        "each rank; let its batch factor be a power of two.",
        count);
  }
  if (count > std::int64_t{1} << levels_.size()) {
    throw config_error(
        "run.determinism = \"world\" has made its tree for {} micro-batches on each rank, and the schedule "
        "asks for {}; "
        "raise train.micro_batches and let the schedule begin with less.",
        std::int64_t{1} << levels_.size(), count);
  }
  std::size_t level = 0;
  for (auto rest = static_cast<std::uint64_t>(micro); rest & 1; rest >>= 1) levels_.at(level++)->run();
  if (micro + 1 == count) return;
  for (const PlannedParameter& parameter : parameters_) {
    store_.copy(level_name(level, parameter.name()), gradient_name(parameter.name()));
  }
  store_.copy(level_name(level, "loss_sum"), step_tensor::loss_sum);
}

void GradientExchange::reduce() {
  if (tree_) {
    if (world_size_ > 1) {
      reduce_->submit();
      reduce_->join();
      add_pieces_->run();
      share_->submit();
      share_->join();
      backend_.copy(store_.address(step_tensor::loss_sum), store_.address(loss_pieces), sizeof(double));
    }
    return;
  }
  if (pack_) pack_->run();
  reduce_->submit();
  reduce_->join();
  if (unpack_) unpack_->run();
}

void GradientExchange::measure() {
  store_.zero(step_tensor::slice_squares);
  measure_->run();
  squares_->submit();
  squares_->join();
}

// Copies this rank's slice of a tensor, which has room for padded ones.
void GradientExchange::cut(const std::string& whole, const std::string& slice) {
  const auto bytes = static_cast<std::size_t>(store_.type(slice).bytes());
  const auto* from =
      static_cast<const std::byte*>(store_.address(whole)) + static_cast<std::size_t>(rank_) * bytes;
  backend_.copy(store_.address(slice), from, bytes);
}

void GradientExchange::cut_gradients() {
  for (const Slice& slice : slices_) {
    const PlannedParameter& parameter = parameters_[slice.parameter];
    cut(gradient_name(parameter.name()), parameter.updated_gradient(world_size_));
  }
}

void GradientExchange::cut_masters() {
  for (const Slice& slice : slices_) {
    const PlannedParameter& parameter = parameters_[slice.parameter];
    cut(master_name(parameter.name()), parameter.updated_master(world_size_));
  }
}

void GradientExchange::gather(std::size_t index) {
  const auto slice = std::ranges::find(slices_, index, &Slice::parameter);
  if (slice != slices_.end()) slice->gather->submit();
}

void GradientExchange::finish_gathering() {
  for (const Slice& slice : slices_) slice.gather->join();
}

}  // namespace mulligan
