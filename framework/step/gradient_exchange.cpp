#include "framework/step/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "framework/core/error.h"
#include "framework/step/step_graphs.h"

namespace mulligan {
namespace {

std::string carried_name(const PlannedParameter& parameter) {
  return fmt::format("carried_gradient/{}", parameter.name());
}
std::string carried_slice_name(const PlannedParameter& parameter) {
  return fmt::format("carried_slice/{}", parameter.name());
}
TensorType gradient_type(const PlannedParameter& parameter) {
  return parameter.layout.spec.type;
}

}  // namespace

GradientExchange::GradientExchange(const RunConfig& config, Backend& backend,
                                   const std::vector<PlannedParameter>& parameters, TensorStore& store,
                                   int world_size)
    : backend_(backend), parameters_(parameters), store_(store), world_size_(world_size) {
  declare_slices();
  if (config.run.determinism == Determinism::world) {
    tree_ = std::make_unique<GradientTree>(config, backend, parameters, store, world_size);
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
  if (tree_) all = tree_->programs();
  for (const auto* one : {&pack_, &unpack_, &measure_}) {
    if (*one) all.push_back(one->get());
  }
  return all;
}

void GradientExchange::declare_slices() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const PlannedParameter& parameter = parameters_[i];
    const TensorType whole = gradient_type(parameter);
    if (parameter.trained()) store_.create(gradient_name(parameter.name()), whole);
    store_.create(master_name(parameter.name()), whole.as(parameter.layout.master));
    if (!parameter.is_cut(world_size_)) continue;
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
    if (!parameter.trained() || parameter.communication_dtype == MLG_F32) continue;
    const TensorType whole = gradient_type(parameter), slice = parameter.updated_type(world_size_);
    const TensorType carried = whole.as(parameter.communication_dtype);
    const Value gradient = pack.external(gradient_name(parameter.name()), whole);
    pack.call("cast", {gradient, pack.external(carried_name(parameter), carried)});
    const std::string arrived =
        parameter.is_cut(world_size_) ? carried_slice_name(parameter) : carried_name(parameter);
    unpack.call("cast", {unpack.external(arrived, slice.as(parameter.communication_dtype)),
                         unpack.external(parameter.updated_gradient(world_size_), slice)});
    store_.create(carried_name(parameter), carried);
    store_.reserve(carried_name(parameter), slice.as(parameter.communication_dtype).bytes() * world_size_);
  }
  if (pack.calls().empty()) return;
  pack_ = program(std::move(pack), "gradients into the dtype they travel in");
  unpack_ = program(std::move(unpack), "gradients from the dtype they travelled in");
}

void GradientExchange::prepare(Communicator& communicator) {
  rank_ = communicator.rank();
  for (Slice& slice : slices_) {
    const PlannedParameter& parameter = parameters_[slice.parameter];
    slice.gather =
        communicator.prepare(store_, {{Collective::all_gather, parameter.updated_master(world_size_),
                                       master_name(parameter.name()), slice.elements}});
  }
  if (tree_) return tree_->prepare(communicator);
  std::vector<Transfer> reduce;
  for (const PlannedParameter& parameter : parameters_) {
    if (!parameter.trained()) continue;
    const bool carried = world_size_ > 1 && parameter.communication_dtype != MLG_F32;
    const std::string gradient = carried ? carried_name(parameter) : gradient_name(parameter.name());
    if (!parameter.is_cut(world_size_)) {
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

void GradientExchange::reduce() {
  if (tree_) return tree_->reduce();
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

void GradientExchange::cut_gradients() {
  for (const Slice& slice : slices_) {
    const PlannedParameter& parameter = parameters_[slice.parameter];
    store_.copy_share(parameter.updated_gradient(world_size_), gradient_name(parameter.name()), rank_);
  }
}

void GradientExchange::cut_masters() {
  for (const Slice& slice : slices_) {
    const PlannedParameter& parameter = parameters_[slice.parameter];
    store_.copy_share(parameter.updated_master(world_size_), master_name(parameter.name()), rank_);
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
