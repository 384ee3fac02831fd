#include "plugins/backends/cuda/attention/attention_call.h"

#include <string_view>
#include <utility>
#include <vector>

#include "kernels/attention/signature.h"

namespace mulligan::cuda {

using Forward = shapes::AttentionForward;
using Backward = shapes::AttentionBackward;

std::unique_ptr<AttentionCall> AttentionCall::make(AttentionLibrary& library, const mlg_kernel& kernel,
                                                   const backends::CallArguments& arguments) {
  const std::string_view name = kernel.name;
  const bool stable = name == shapes::AttentionStableForward::name;
  if (name != Forward::name && name != Backward::name && !stable) return nullptr;
  // q, k, v and cu_seqlens, and the scale, come first in all signatures.
  const std::vector<mlg_tensor>& tensors = arguments.tensors();
  const mlg_tensor &q = tensors[Forward::q], &k = tensors[Forward::k];
  AttentionShape shape;
  shape.backward = name == Backward::name;
  shape.tokens = q.shape[0];
  shape.query_heads = q.shape[1];
  shape.kv_heads = k.shape[1];
  shape.width = q.shape[2];
  shape.scale = arguments.attributes()[Forward::softmax_scale];
  shape.dtype = static_cast<mlg_dtype>(q.dtype);
  if (!library.wanted(shape)) return nullptr;
  if (stable) {
    library.leave_to_own_kernel();
    return nullptr;
  }
  const std::optional<std::size_t> bytes = library.workspace_bytes(shape);
  if (!bytes) return nullptr;
  RowLayout layout;
  layout.boundaries = tensors[Forward::cu_seqlens].shape[0];
  layout.most_rows = most_rows(layout.boundaries - 1, shape.tokens);
  layout.query = shape.query_heads * shape.width;
  layout.kv = shape.kv_heads * shape.width;
  layout.stats = shape.query_heads;
  return std::unique_ptr<AttentionCall>(new AttentionCall(library, shape, layout, arguments, *bytes));
}

// Workspace is asked for once, before it is known which segments will come: a plan that is not packed needs
// the more.
AttentionCall::AttentionCall(AttentionLibrary& library, const AttentionShape& shape, const RowLayout& layout,
                             const backends::CallArguments& arguments, std::size_t library_bytes)
    : library_(library), shape_(shape), layout_(layout), arguments_(arguments) {
  own_bytes_ = plan_attention_rows(arguments_.launch(), shape_of({1, shape.tokens, false})).bytes;
  workspace_bytes_ = own_bytes_ + library_bytes;
}

AttentionCall::~AttentionCall() {
  if (watched_) library_.tables().unwatch(watched_, this);
}

AttentionShape AttentionCall::shape_of(const AttentionBucket& bucket) const {
  AttentionShape shape = shape_;
  shape.rows = bucket.rows;
  shape.longest = bucket.longest;
  shape.packed = bucket.packed;
  return shape;
}

void AttentionCall::bind(const Tensors& tensors, void* workspace) {
  tensors_ = tensors;
  workspace_ = workspace;
  if (watched_) library_.tables().unwatch(std::exchange(watched_, nullptr), this);
  const DeviceArgument cu_seqlens = tensors_(Forward::cu_seqlens);
  std::vector<std::int32_t> contents(cu_seqlens.bytes / sizeof(std::int32_t));
  library_.device().from_device(contents.data(), cu_seqlens.address, cu_seqlens.bytes);
  library_.tables().watch(cu_seqlens.address, shape_.tokens, std::move(contents), this, [this] { expect(); });
  watched_ = cu_seqlens.address;
  rows_ = library_.rows().rows(cu_seqlens.address, layout_);
  for (auto& [bucket, ready] : ready_) place(ready);
  expect();
}

void AttentionCall::expect() {
  const std::optional<SegmentSummary> summary = library_.tables().summary(watched_);
  if (!summary) return;
  const AttentionBucket bucket = bucket_of(*summary);
  const bool none = bucket.packed && bucket.rows > layout_.most_rows;  // make_ready()
  if (!none && !ready_.contains(bucket)) library_.expect(shape_of(bucket));
}

std::uint64_t AttentionCall::choose() {
  const std::optional<SegmentSummary> summary = library_.tables().summary(watched_);
  if (!summary) return 0;  // the own kernel looks at the values, and answers nonsense with NaN
  const AttentionBucket bucket = bucket_of(*summary);
  auto known = ready_.find(bucket);
  if (known == ready_.end()) known = ready_.emplace(bucket, make_ready(bucket)).first;
  chosen_ = &known->second;
  return chosen_->number;
}

void AttentionCall::load() {
  SegmentRows::load(library_.device(), layout_);
  // A plan that is not packed has all the launches that there are.
  const AttentionRows rows = plan_attention_rows(arguments_.launch(), shape_of({1, shape_.tokens, false}));
  for (const LaunchPlan* plan : {&rows.before, &rows.after})
    LaunchSteps(library_.device(), SegmentRowsCall::name, attention_rows_source(), **plan);
}

AttentionCall::Ready AttentionCall::make_ready(const AttentionBucket& bucket) {
  Ready ready;
  const AttentionShape shape = shape_of(bucket);
  if (bucket.packed && bucket.rows > layout_.most_rows) {
    library_.leave(shape);
    return ready;
  }
  ready.plan = library_.plan(shape);
  if (!ready.plan) return ready;
  if (own_bytes_ + ready.plan->workspace_bytes() > workspace_bytes_)
    ready.room = library_.more_workspace(shape, ready.plan->workspace_bytes());
  ready.number = ready_.size() + 1;
  ready.rows = plan_attention_rows(arguments_.launch(), shape);
  const char* source = attention_rows_source();
  ready.before = LaunchSteps(library_.device(), SegmentRowsCall::name, source, *ready.rows.before);
  ready.after = LaunchSteps(library_.device(), SegmentRowsCall::name, source, *ready.rows.after);
  if (tensors_) place(ready);
  return ready;
}

void AttentionCall::place(Ready& ready) const {
  if (!ready.plan || ready.number == 0) return;
  ready.before.place(tensors_, workspace_);
  ready.after.place(tensors_, workspace_);
  const auto at = [this](const mlg_cuda_argument& place) { return workspace_argument(place, workspace_); };
  AttentionArguments& a = ready.arguments;
  const AttentionRows& rows = ready.rows;
  a.q = tensors_(Forward::q);
  a.k = tensors_(Forward::k);
  a.v = tensors_(Forward::v);
  a.o = tensors_(shape_.backward ? std::uint32_t{Backward::o} : std::uint32_t{Forward::o});
  // The statistics have the same place in both signatures.
  a.stats = rows.stats.bytes > 0 ? at(rows.stats) : tensors_(Forward::lse);
  a.query_starts = rows_->part(SegmentRowsCall::query_starts);
  a.kv_starts = rows_->part(SegmentRowsCall::kv_starts);
  a.stats_starts = rows_->part(SegmentRowsCall::stats_starts);
  a.lengths = rows_->part(SegmentRowsCall::lengths);
  if (!shape_.backward) return;
  a.d_o = tensors_(Backward::d_o);
  DeviceArgument* gradients[] = {&a.dq, &a.dk, &a.dv};
  for (std::uint32_t i = 0; i < 3; ++i) {
    *gradients[i] = rows.gradients[i].bytes > 0 ? at(rows.gradients[i]) : tensors_(Backward::dq + i);
  }
}

std::uint32_t AttentionCall::launches() const {
  return chosen_->before.size() + chosen_->after.size();
}

void AttentionCall::run() {
  chosen_->before.run();
  chosen_->plan->run(chosen_->arguments,
                     chosen_->room ? chosen_->room : static_cast<char*>(workspace_) + own_bytes_);
  chosen_->after.run();
}

}  // namespace mulligan::cuda
