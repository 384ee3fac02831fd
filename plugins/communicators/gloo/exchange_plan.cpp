#include "plugins/communicators/gloo/exchange_plan.h"

#include <mulligan/dtype.hpp>

#include <algorithm>

namespace mulligan::gloo_ranks {
namespace {

constexpr std::size_t kPacked = std::size_t{64} << 10;  // bytes below which a run is packed with others
constexpr std::size_t kMost = std::size_t{1} << 20;  // bytes of a message: sums of one while the next travels
constexpr std::size_t kAlignment = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Appends a run to the last message or to a new one: by sizes alone, so that sender and receiver agree.
Part& append(std::vector<Message>& messages, char* memory, std::size_t bytes) {
  const bool packed = bytes < kPacked;
  if (!packed || messages.empty() || !messages.back().packed ||
      aligned(messages.back().bytes) + bytes > kMost) {
    messages.emplace_back().packed = packed;
  }
  Message& message = messages.back();
  const std::size_t offset = aligned(message.bytes);
  message.bytes = offset + bytes;
  return message.parts.emplace_back(Part{memory, bytes, offset});
}

class Planner {
 public:
  Planner(int rank, int size) : rank_(rank), size_(size) {
    plan_.outgoing.resize(static_cast<std::size_t>(size));
    plan_.incoming.resize(static_cast<std::size_t>(size));
    plan_.incoming_sums.resize(static_cast<std::size_t>(size));
  }

  void add(const sdk::Collective& one) {
    switch (one.kind) {
      case MLG_ALL_REDUCE:
        return add_all_reduce(one);
      case MLG_REDUCE_SCATTER:
        return add_shares(one, one.count, one.count * size_, false);
      case MLG_ALL_GATHER:
        for (int from = 0; from < size_; ++from) {
          for (int to = 0; to < size_; ++to) move(one, from, to, 0, from);
        }
        return;
      case MLG_ALL_TO_ALL:
        for (int from = 0; from < size_; ++from) {
          for (int to = 0; to < size_; ++to) move(one, from, to, to, from);
        }
        return;
      case MLG_BROADCAST:
        for (int to = 0; to < size_; ++to) move(one, one.root, to, 0, 0);
        return;
      default:  // MLG_REDUCE
        for (std::int64_t piece = 0; piece < one.count; piece += most_elements(one)) {
          add_piece(one, one.root, at(one.from, piece, one), at(one.to, piece, one),
                    std::min(most_elements(one), one.count - piece), false);
        }
    }
  }
  Plan finish() { return std::move(plan_); }

 private:
  static std::size_t element(const sdk::Collective& one) { return sdk::dtype_bytes(one.dtype); }
  static char* at(const void* start, std::int64_t index, const sdk::Collective& one) {
    return static_cast<char*>(const_cast<void*>(start)) + static_cast<std::size_t>(index) * element(one);
  }
  static std::int64_t most_elements(const sdk::Collective& one) {
    return static_cast<std::int64_t>(kMost / element(one));
  }

  void add_all_reduce(const sdk::Collective& one) {
    // Shares begin at whole cache lines, counted from the tensor's start.
    const auto line = static_cast<std::int64_t>(kAlignment / element(one));
    const std::int64_t share = ((one.count + size_ - 1) / size_ + line - 1) / line * line;
    add_shares(one, share, one.count, true);
  }

  // Rank r adds the elements from r * share on of every rank's `from`, a share as far as there are `total`,
  // into `to`: at the same place where it `spreads` the sums to all, else at its start. Pieces of all ranks
  // take turns, so that all have something to add early.
  void add_shares(const sdk::Collective& one, std::int64_t share, std::int64_t total, bool spreads) {
    for (std::int64_t piece = 0; piece < share; piece += most_elements(one)) {
      for (int owner = 0; owner < size_; ++owner) {
        const std::int64_t start = owner * share + piece;
        const std::int64_t count = std::min({most_elements(one), share - piece, total - start});
        if (count <= 0) continue;
        add_piece(one, owner, at(one.from, start, one), at(one.to, spreads ? start : piece, one), count,
                  spreads);
      }
    }
  }

  void add_piece(const sdk::Collective& one, int owner, char* from, char* to, std::int64_t count,
                 bool spreads) {
    const std::size_t bytes = static_cast<std::size_t>(count) * element(one);
    const auto index = static_cast<std::size_t>(owner);
    if (owner != rank_) {
      append(plan_.outgoing[index], from, bytes);
      if (spreads) append(plan_.incoming_sums[index], to, bytes);
      return;
    }
    const auto ranks = static_cast<std::size_t>(size_);
    Sum sum{one.dtype, count, to, std::vector<Sum::Source>(ranks), std::vector<const void*>(ranks, from), 0};
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      if (peer == index) continue;
      std::vector<Message>& messages = plan_.incoming[peer];
      const std::size_t offset = append(messages, nullptr, bytes).offset;
      sum.sources[peer] = {messages.size(), offset};
    }
    if (spreads) {
      append(plan_.sums, to, bytes);
      // Complete but for the last, which later sums may join.
      sum.sums_ready = plan_.sums.size() - 1;
      if (!plan_.additions.empty() && plan_.additions.back().sums_ready < sum.sums_ready) {
        plan_.additions.back().sums_ready = sum.sums_ready;
      }
    } else {
      sum.sums_ready = plan_.additions.empty() ? 0 : plan_.additions.back().sums_ready;
    }
    plan_.additions.push_back(std::move(sum));
  }

  // Rank `from`'s block `from_block` of `from` becomes rank `to`'s block `to_block` of `to`.
  void move(const sdk::Collective& one, int from, int to, int from_block, int to_block) {
    for (std::int64_t piece = 0; piece < one.count; piece += most_elements(one)) {
      const std::int64_t count = std::min(most_elements(one), one.count - piece);
      const std::size_t bytes = static_cast<std::size_t>(count) * element(one);
      char* source = at(one.from, from_block * one.count + piece, one);
      char* target = at(one.to, to_block * one.count + piece, one);
      if (from == rank_ && to == rank_) {
        if (source != target) plan_.copies.push_back({target, source, bytes});
      } else if (from == rank_) {
        append(plan_.outgoing[static_cast<std::size_t>(to)], source, bytes);
      } else if (to == rank_) {
        append(plan_.incoming[static_cast<std::size_t>(from)], target, bytes);
      }
    }
  }

  int rank_, size_;
  Plan plan_;
};

}  // namespace

void Plan::place(char* workspace) {
  std::size_t used = 0;
  const auto give = [&](std::vector<Message>& messages) {
    for (Message& message : messages) {
      if (!message.packed && message.parts.front().memory) continue;
      message.buffer = workspace + used;
      used += aligned(message.bytes);
    }
  };
  for (auto& messages : outgoing) give(messages);
  for (auto& messages : incoming) give(messages);
  give(sums);
  for (auto& messages : incoming_sums) give(messages);
  workspace_bytes = used;
  if (!workspace) return;
  for (Sum& sum : additions) {
    for (std::size_t peer = 0; peer < sum.sources.size(); ++peer) {
      const Sum::Source& source = sum.sources[peer];
      if (source.messages > 0) sum.parts[peer] = incoming[peer][source.messages - 1].buffer + source.offset;
    }
  }
}

Plan make_plan(std::span<const sdk::Collective> list, int rank, int size) {
  Planner planner(rank, size);
  // Small ones first, so that they fill messages together.
  const auto is_small = [](const sdk::Collective& one) {
    return static_cast<std::size_t>(one.count) * sdk::dtype_bytes(one.dtype) < kPacked;
  };
  for (const bool small : {true, false}) {
    for (const sdk::Collective& one : list) {
      if (is_small(one) == small) planner.add(one);
    }
  }
  Plan plan = planner.finish();
  if (!plan.additions.empty()) plan.additions.back().sums_ready = plan.sums.size();
  plan.place(nullptr);
  return plan;
}

}  // namespace mulligan::gloo_ranks
