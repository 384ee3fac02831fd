#include "framework/step/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/core/error.h"
#include "framework/step/evaluation_weights.h"
#include "framework/step/step_graphs.h"

namespace mulligan {
namespace {

std::string carried_name(const PlannedParameter& parameter) {
  return fmt::format("carried_gradient/{}", parameter.name());
}
std::string carried_slice_name(const PlannedParameter& parameter) {
  return fmt::format("carried_slice/{}", parameter.name());
}
}  // namespace

GradientExchange::GradientExchange(const RunConfig& config, const UpdateUnits& units, TensorStore& store,
                                   Communicator& communicator)
    : units_(units),
      parameters_(units.parameters()),
      store_(store),
      communicator_(communicator),
      world_size_(communicator.world_size()),
      rank_(communicator.rank()) {
  declare_slices(config);
  if (config.run.determinism == Determinism::world) {
    tree_ = std::make_unique<GradientTree>(config, parameters_, store, world_size_);
    return;
  }
  parts_ = gradient_parts(parameters_, world_size_);
  declare_carried();
  if (!gathers_.empty() && !clips_before_reduction(config.train)) {
    Graph graph;
    const auto optimizers = static_cast<std::int64_t>(config.optimizers.size());
    const Value sums = graph.external(step_tensor::slice_squares, TensorType(MLG_F64, {optimizers}));
    for (const Gather& gather : gathers_) {
      const PlannedParameter& parameter = parameters_[gather.parameter];
      if (!is_mine(parameter)) continue;
      graph.call(
          "sum_squares_f64",
          {graph.external(parameter.updated_gradient(world_size_), parameter.updated_type(world_size_)),
           graph.view(sums, static_cast<std::int64_t>(parameter.optimizer), TensorType(MLG_F64, {1}))});
    }
    measure_ = make_program(store_, std::move(graph), "squares of this rank's gradients");
  }
}

GradientExchange::~GradientExchange() = default;

std::vector<Program*> GradientExchange::programs() const {
  std::vector<Program*> all;
  if (tree_) all = tree_->programs();
  for (const auto* one : {&pack_, &unpack_, &measure_}) {
    if (*one) all.push_back(one->get());
  }
  for (const auto& [program, stages] : overlapped_) {
    for (const Stage& stage : stages) {
      if (stage.pack) all.push_back(stage.pack.get());
    }
  }
  return all;
}

void GradientExchange::declare_slices(const RunConfig& config) {
  const bool averaged = scores_averages(config);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const PlannedParameter& parameter = parameters_[i];
    const TensorType whole = parameter.layout.spec.type;
    const DType master = parameter.layout.master;
    if (parameter.trained()) store_.create(gradient_name(parameter.name()), whole);
    store_.create(master_name(parameter.name()), whole.as(master));
    if (parameter.is_gathered(world_size_)) gathers_.push_back({i, nullptr});
    if (!parameter.is_cut(world_size_)) continue;
    const std::string gradient = gradient_name(parameter.name());
    declare_slice(parameter.updated_gradient(world_size_), gradient, parameter, whole.dtype);
    declare_slice(parameter.updated_master(world_size_), master_name(parameter.name()), parameter, master);
    if (averaged) store_.create_part(average_name(parameter.name()), whole, gradient, 0);
    if (const std::string slice = updated_evaluation_name(parameter, world_size_); store_.contains(slice)) {
      store_.create(evaluation_name(parameter.name()), whole);
      declare_slice(slice, evaluation_name(parameter.name()), parameter, whole.dtype);
    }
    cut_.push_back(i);
  }
}

// Tensor `slice` is this rank's place in `whole`; what of it is padding, or all of it for a rank that has no
// entries, lies after the whole.
void GradientExchange::declare_slice(std::string_view slice, std::string_view whole,
                                     const PlannedParameter& parameter, DType dtype) {
  const TensorType type = parameter.updated_type(world_size_).as(dtype);
  const std::int64_t begin = std::min(rank_ * type.elements(), parameter.layout.spec.type.elements());
  store_.reserve(whole, begin * dtype_size(dtype) + type.bytes());
  if (in_equal_shares(parameter)) store_.reserve(whole, type.bytes() * world_size_);
  store_.create_part(slice, type, whole, begin);
}

// Copies of gradients in the dtype in which they travel.
void GradientExchange::declare_carried() {
  if (world_size_ == 1) return;
  Graph unpack;
  for (const PlannedParameter& parameter : parameters_) {
    if (!parameter.trained() || parameter.communication_dtype == MLG_F32) continue;
    const TensorType whole = parameter.layout.spec.type, slice = parameter.updated_type(world_size_);
    const DType dtype = parameter.communication_dtype;
    const TensorType carried = whole.as(dtype);
    store_.create(carried_name(parameter), carried);
    const bool cut = parameter.is_cut(world_size_);
    if (cut) declare_slice(carried_slice_name(parameter), carried_name(parameter), parameter, dtype);
    if (!is_mine(parameter)) continue;
    unpack.call("cast", {unpack.external(cut ? carried_slice_name(parameter) : carried_name(parameter),
                                         slice.as(dtype)),
                         unpack.external(parameter.updated_gradient(world_size_), slice)});
  }
  if (unpack.calls().empty()) return;
  std::vector<std::size_t> all(parts_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  pack_ = pack_of(all);
  unpack_ = make_program(store_, std::move(unpack), "gradients from the dtype they travelled in");
}

void GradientExchange::prepare() {
  std::vector<Transfer> averages, evaluation;
  for (Gather& gather : gathers_) {
    const PlannedParameter& parameter = parameters_[gather.parameter];
    gather.batch = communicator_.prepare(
        store_, gathers_of(parameter, parameter.updated_master(world_size_), master_name(parameter.name())));
  }
  for (const std::size_t index : cut_) {
    const PlannedParameter& parameter = parameters_[index];
    const std::string gradient = gradient_name(parameter.name());
    const auto add = [&](std::vector<Transfer>& list, const std::string& from, const std::string& to) {
      for (Transfer& transfer : gathers_of(parameter, from, to)) list.push_back(std::move(transfer));
    };
    if (store_.contains(average_name(parameter.name()))) {
      add(averages, parameter.updated_gradient(world_size_), gradient);
    }
    if (const std::string from = updated_evaluation_name(parameter, world_size_); store_.contains(from)) {
      add(evaluation, from, evaluation_name(parameter.name()));
    }
  }
  if (!averages.empty()) averages_ = communicator_.prepare(store_, std::move(averages));
  if (!evaluation.empty()) evaluation_ = communicator_.prepare(store_, std::move(evaluation));
  if (tree_) return tree_->prepare(communicator_);
  std::vector<Transfer> reduce;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const PlannedParameter& parameter = parameters_[parts_[i].unit];
    if (in_equal_shares(parameter)) {  // one transfer for all of its parts
      if (parts_[i].offset == 0) reduce.push_back(whole_sum_of(parameter));
    } else {
      reduce.push_back(sum_of(parts_[i]));
    }
  }
  reduce.push_back({Collective::all_reduce, step_tensor::loss_sum, step_tensor::loss_sum, 1});
  reduce_ = communicator_.prepare(store_, std::move(reduce));
  for (auto& [program, stages] : overlapped_) {
    for (Stage& stage : stages) {
      std::vector<Transfer> sums;
      for (const std::size_t part : stage.parts) sums.push_back(sum_of(parts_[part]));
      if (&stage == &stages.back())
        sums.push_back({Collective::all_reduce, step_tensor::loss_sum, step_tensor::loss_sum, 1});
      stage.batch = communicator_.prepare(store_, std::move(sums));
    }
  }
  if (!measure_) return;
  const std::int64_t optimizers = store_.type(step_tensor::slice_squares).elements();
  squares_ = communicator_.prepare(
      store_, {{Collective::all_reduce, step_tensor::slice_squares, step_tensor::slice_squares, optimizers}});
}

// What each rank updated, in its place of tensor `whole`, to all: as equal shares, or one by one.
std::vector<Transfer> GradientExchange::gathers_of(const PlannedParameter& parameter,
                                                   const std::string& slice, const std::string& whole) const {
  const std::int64_t share = parameter.updated_type(world_size_).elements();
  if (in_equal_shares(parameter)) return {{Collective::all_gather, slice, whole, share}};
  std::vector<Transfer> gathers;
  const std::int64_t all = parameter.layout.spec.type.elements();
  if (const int owner = parameter.owner(world_size_); owner != PlannedParameter::everybody) {
    return {{Collective::broadcast, whole, whole, all, owner}};
  }
  for (std::int64_t first = 0; first < all; first += share) {
    gathers.push_back({Collective::broadcast, whole, whole, std::min(share, all - first),
                       static_cast<int>(first / share), first});
  }
  return gathers;
}

// In place: the sums of all parts are what one transfer of the whole would leave.
Transfer GradientExchange::sum_of(const GradientPart& part) const {
  const PlannedParameter& parameter = parameters_[part.unit];
  const std::string name = carries(parameter) ? carried_name(parameter) : gradient_name(parameter.name());
  if (part.owner == PlannedParameter::everybody) {
    return {Collective::all_reduce, name, name, part.elements, 0, part.offset};
  }
  return {Collective::reduce, name, name, part.elements, part.owner, part.offset};
}

// Of all parts of a parameter at once.
Transfer GradientExchange::whole_sum_of(const PlannedParameter& parameter) const {
  const bool carried = carries(parameter);
  const std::string name = carried ? carried_name(parameter) : gradient_name(parameter.name());
  const std::int64_t elements = parameter.updated_type(world_size_).elements();
  if (!parameter.is_cut(world_size_)) return {Collective::all_reduce, name, name, elements};
  return {Collective::reduce_scatter, name,
          carried ? carried_slice_name(parameter) : parameter.updated_gradient(world_size_), elements};
}

// Casts of parts that travel in another dtype; null where there is none.
std::unique_ptr<Program> GradientExchange::pack_of(const std::vector<std::size_t>& parts) {
  Graph graph;
  for (const std::size_t index : parts) {
    const GradientPart& part = parts_[index];
    const PlannedParameter& parameter = parameters_[part.unit];
    if (!carries(parameter)) continue;
    const TensorType whole = parameter.layout.spec.type, type(whole.dtype, {part.elements});
    const DType dtype = parameter.communication_dtype;
    graph.call("cast", {graph.view(graph.external(gradient_name(parameter.name()), whole), part.offset, type),
                        graph.view(graph.external(carried_name(parameter), whole.as(dtype)), part.offset,
                                   type.as(dtype))});
  }
  if (graph.calls().empty()) return nullptr;
  return make_program(store_, std::move(graph), "gradients into the dtype they travel in");
}

void GradientExchange::overlap(Program& micro_step) {
  if (tree_ || world_size_ == 1 || overlaps(micro_step)) return;
  std::vector<std::int64_t> bytes;
  for (const GradientPart& part : parts_) {
    const PlannedParameter& parameter = parameters_[part.unit];
    bytes.push_back(part.elements * dtype_size(carries(parameter) ? parameter.communication_dtype : MLG_F32));
  }
  const Graph& graph = micro_step.graph();
  std::vector<Stage>& stages = overlapped_[&micro_step];
  for (ReductionStage& stage :
       reduction_stages(complete_after(graph, units_, parts_), bytes, graph.calls().size())) {
    std::unique_ptr<Program> pack = pack_of(stage.parts);
    stages.push_back({stage.calls, std::move(stage.parts), std::move(pack), nullptr});
  }
}

void GradientExchange::run_and_reduce(Program& micro_step) {
  std::size_t begin = 0;
  for (Stage& stage : overlapped_.at(&micro_step)) {
    micro_step.run_range(std::exchange(begin, stage.calls), stage.calls);
    if (stage.pack) stage.pack->run();
    stage.batch->submit();
  }
  for (Stage& stage : overlapped_.at(&micro_step)) stage.batch->join();
  if (unpack_) unpack_->run();
}

void GradientExchange::reduce() {
  if (tree_) return tree_->reduce();
  if (pack_) pack_->run();
  reduce_->run();
  if (unpack_) unpack_->run();
}

void GradientExchange::measure() {
  store_.zero(step_tensor::slice_squares);
  measure_->run();
  squares_->run();
}

void GradientExchange::gather(std::size_t index) {
  const auto gather = std::ranges::find(gathers_, index, &Gather::parameter);
  if (gather != gathers_.end()) gather->batch->submit();
}

void GradientExchange::finish_gathering() {
  for (const Gather& gather : gathers_) gather.batch->join();
}

void GradientExchange::gather_averages() {
  if (!averages_) return;
  for (const std::size_t index : cut_) {
    const PlannedParameter& parameter = parameters_[index];
    store_.copy(parameter.updated_gradient(world_size_), updated_average_name(parameter, world_size_));
  }
  averages_->run();
}

std::vector<std::string> GradientExchange::averages_in_gradients() const {
  std::vector<std::string> names;
  for (const std::size_t index : cut_) {
    const std::string name = average_name(parameters_[index].name());
    if (store_.contains(name)) names.push_back(name);
  }
  return names;
}

void GradientExchange::gather_evaluation() {
  if (!evaluation_) return;
  evaluation_->run();
}

}  // namespace mulligan
