#include "framework/step/state_exchange.h"

#include <fmt/format.h>

#include <utility>

namespace mulligan {

StateExchange::StateExchange(TensorStore& store, const std::map<std::string, TensorType>& cut, int world_size)
    : store_(store) {
  for (const auto& [state, type] : cut) {
    const std::string whole = fmt::format("whole/{}", state);
    store_.create(whole, type);
    store_.reserve(whole, store_.type(state).bytes() * world_size);
    whole_names_.emplace(state, whole);
  }
}

void StateExchange::prepare(Communicator& communicator, const std::vector<std::string>& state) {
  communicator_ = &communicator;
  rank_ = communicator.rank();
  std::vector<Transfer> gather, share;
  for (const auto& [slice, whole] : whole_names_) {
    gather.push_back({Collective::all_gather, slice, whole, store_.type(slice).elements()});
  }
  for (const StateTensor& tensor : whole(state)) {
    share.push_back(
        {Collective::broadcast, tensor.source, tensor.source, store_.type(tensor.source).elements()});
  }
  gather_ = communicator.prepare(store_, std::move(gather));
  share_ = communicator.prepare(store_, std::move(share));
}

std::vector<StateTensor> StateExchange::whole(const std::vector<std::string>& state) const {
  std::vector<StateTensor> tensors;
  for (const std::string& name : state) {
    const auto cut = whole_names_.find(name);
    tensors.push_back({name, cut == whole_names_.end() ? name : cut->second});
  }
  return tensors;
}

void StateExchange::gather() {
  gather_->submit();
  gather_->join();
  communicator_->finish(store_);
}

void StateExchange::share() {
  share_->submit();
  share_->join();
  for (const auto& [slice, whole] : whole_names_) {
    store_.copy_share(slice, whole, rank_);
  }
}

}  // namespace mulligan
