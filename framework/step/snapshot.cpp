#include "framework/step/snapshot.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "framework/core/sha256.h"

namespace mulligan {

StateSnapshot::StateSnapshot(TensorStore& store, std::vector<std::string> names)
    : store_(store), names_(std::move(names)) {
  for (const std::string& name : names_) {
    std::vector<std::byte> bytes = download_bytes(store_, name);
    const bool zero = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    contents_.push_back(zero ? std::vector<std::byte>() : std::move(bytes));
  }
}

void StateSnapshot::restore_to(TensorStore& store) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (contents_[i].empty()) {
      store.zero(names_[i]);
    } else {
      store.upload(names_[i], std::span<const std::byte>(contents_[i]));
    }
  }
}

std::string state_digest(const TensorStore& store, const std::vector<StateTensor>& tensors,
                         std::string_view counters) {
  Sha256 all;
  all.update(counters);
  for (const StateTensor& tensor : tensors) {
    all.update(fmt::format("\n{} {}\n", tensor.name, tensor.type(store).text()));
    all.update(std::span<const std::byte>(tensor.read(store)));
  }
  return all.hex();
}

namespace {

constexpr std::int64_t most_buffer = std::int64_t{16} << 20;  // bytes, of all ranks together
constexpr const char* own = "state_exchange/own";
constexpr const char* all = "state_exchange/all";

std::byte* at(const TensorStore& store, std::string_view tensor, std::int64_t offset) {
  return static_cast<std::byte*>(store.address(tensor)) + offset;
}

}  // namespace

StateExchange::StateExchange(TensorStore& store, std::vector<CutState> cut, int world_size)
    : store_(store), cut_(std::move(cut)), world_size_(world_size) {
  for (const CutState& state : cut_) stretch_ = std::max(stretch_, slice_bytes(state));
  stretch_ = std::min(stretch_, std::max<std::int64_t>(most_buffer / world_size, 1));
  if (stretch_ == 0) return;
  store.create(own, TensorType(MLG_U8, {stretch_}));
  store.create(all, TensorType(MLG_U8, {stretch_ * world_size}));
}

void StateExchange::prepare(Communicator& communicator, const std::vector<std::string>& state) {
  communicator_ = &communicator;
  std::vector<Transfer> whole;
  for (const std::string& name : state) {
    if (!find(name)) whole.push_back({Collective::broadcast, name, name, store_.type(name).elements()});
  }
  share_whole_ = communicator.prepare(store_, std::move(whole));
  if (stretch_ == 0) return;
  gather_ = communicator.prepare(store_, {{Collective::all_gather, own, all, stretch_}});
  share_ = communicator.prepare(store_, {{Collective::broadcast, all, all, stretch_ * world_size_}});
}

const CutState* StateExchange::find(const std::string& slice) const {
  const auto found = std::ranges::find(cut_, slice, &CutState::slice);
  return found == cut_.end() ? nullptr : &*found;
}

std::int64_t StateExchange::slice_bytes(const CutState& cut) const {
  return cut.owner == PlannedParameter::everybody ? store_.type(cut.slice).bytes() : cut.type.bytes();
}

std::vector<StateTensor> StateExchange::whole(const std::vector<std::string>& state) const {
  std::vector<StateTensor> tensors;
  for (const std::string& name : state) {
    if (const CutState* cut = find(name)) {
      tensors.push_back({cut->name, name, std::make_shared<HostTensor>(cut->type, std::vector<std::byte>())});
    } else {
      tensors.push_back({name, name});
    }
  }
  return tensors;
}

template <typename Pass>
void StateExchange::in_stretches(const CutState& cut, Pass&& pass) const {
  const std::int64_t slice = slice_bytes(cut);
  for (std::int64_t begin = 0; begin < slice; begin += stretch_) {
    pass(begin, std::min(stretch_, slice - begin));
  }
}

// Where a stretch of a rank's slice lies in the whole: from there, so many bytes that are not padding.
static std::pair<std::int64_t, std::size_t> place(const CutState& cut, std::int64_t slice, int rank,
                                                  std::int64_t begin, std::int64_t bytes) {
  if (cut.owner != PlannedParameter::everybody) {
    return {begin, rank == cut.owner ? static_cast<std::size_t>(bytes) : 0};
  }
  const std::int64_t start = rank * slice + begin;
  return {start, static_cast<std::size_t>(std::clamp<std::int64_t>(cut.type.bytes() - start, 0, bytes))};
}

// `whole`: null where this rank needs it not.
void StateExchange::gather_slices(const CutState& cut, HostTensor* whole) {
  const std::int64_t slice = slice_bytes(cut);
  if (whole) whole->bytes.resize(static_cast<std::size_t>(cut.type.bytes()));
  in_stretches(cut, [&](std::int64_t begin, std::int64_t bytes) {
    if (is_held(cut)) {
      store_.backend().copy(store_.address(own), at(store_, cut.slice, begin),
                            static_cast<std::size_t>(bytes));
    }
    gather_->run();
    for (int rank = 0; whole && rank < world_size_; ++rank) {
      const auto [start, count] = place(cut, slice, rank, begin, bytes);
      if (count > 0)
        store_.backend().download(&whole->bytes[static_cast<std::size_t>(start)],
                                  at(store_, all, rank * stretch_), count);
    }
  });
}

void StateExchange::share_slices(const CutState& cut, const HostTensor& whole) {
  const std::int64_t slice = slice_bytes(cut);
  in_stretches(cut, [&](std::int64_t begin, std::int64_t bytes) {
    for (int rank = 0; communicator_->rank() == 0 && rank < world_size_; ++rank) {
      const auto [start, count] = place(cut, slice, rank, begin, bytes);
      store_.backend().zero(at(store_, all, rank * stretch_), static_cast<std::size_t>(bytes));
      if (count > 0)
        store_.backend().upload(at(store_, all, rank * stretch_),
                                &whole.bytes.at(static_cast<std::size_t>(start)), count);
    }
    share_->run();
    if (is_held(cut)) {
      store_.backend().copy(at(store_, cut.slice, begin), at(store_, all, communicator_->rank() * stretch_),
                            static_cast<std::size_t>(bytes));
    }
  });
}

std::vector<StateTensor> StateExchange::gather(const std::vector<std::string>& state, bool everywhere) {
  std::vector<StateTensor> tensors = whole(state);
  for (const StateTensor& tensor : tensors) {
    if (!tensor.host) continue;
    const bool wanted = everywhere || communicator_->rank() == 0;
    gather_slices(*find(tensor.source), wanted ? tensor.host.get() : nullptr);
  }
  communicator_->finish(store_);
  return tensors;
}

void StateExchange::share(const std::vector<StateTensor>& tensors) {
  share_whole_->run();
  for (const StateTensor& tensor : tensors) {
    if (tensor.host) share_slices(*find(tensor.source), *tensor.host);
  }
}

}  // namespace mulligan
