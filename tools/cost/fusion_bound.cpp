#include "tools/cost/fusion_bound.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <vector>

#include "tools/cost/cost.h"

namespace mulligan {
namespace {

// Part of a tensor's storage, in bytes.
struct Piece {
  std::uint32_t root = 0;
  std::int64_t begin = 0, end = 0;
  auto operator<=>(const Piece&) const = default;
};

struct Group {
  int depth = 0;                          // groups that wait for each other, one after the other
  std::set<Piece> operands;               // of its products
  std::set<Piece> read, written;          // crossing memory
  double bf16_flops = 0, fp32_flops = 0;  // of products, and of fp32 attention
  double attention_flops = 0;             // bf16
};

class Grouping {
 public:
  Grouping(const Graph& graph, const CallAccess& access, std::int64_t segment_tokens, const Card& card)
      : graph_(graph) {
    groups_.emplace_back();  // what waits for no product
    for (const Call& call : graph.calls())
      place(call, access.of(call), call_cost(graph, call, segment_tokens, card));
  }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  struct Write {
    Piece piece;
    std::size_t group;
  };

  Piece piece_of(Value value) const {
    const Graph::ValueInfo& info = graph_.info(value);
    const std::int64_t begin =
        info.storage == Graph::Storage::view ? info.offset * dtype_size(info.type.dtype) : 0;
    return {graph_.root(value).id, begin, begin + info.type.bytes()};
  }
  bool outlasts(const Piece& piece) const {
    return graph_.info(Value{piece.root}).storage == Graph::Storage::external;
  }

  void place(const Call& call, const std::vector<Access>& accesses, const Cost& cost) {
    std::vector<Piece> reads, writes;
    for (std::size_t i = 0; i < call.arguments.size(); ++i) {
      if (accesses[i].read) reads.push_back(piece_of(call.arguments[i]));
      if (accesses[i].written) writes.push_back(piece_of(call.arguments[i]));
    }
    const double flops = cost.matmul_flops + cost.attention_flops;
    const std::size_t group = flops > 0 ? group_of_product(reads) : last_awaited(reads);
    Group& mine = groups_[group];
    if (flops > 0 && graph_.type(call.arguments[0]).dtype == MLG_F32) {
      mine.fp32_flops += flops;
    } else {
      mine.bf16_flops += cost.matmul_flops;
      mine.attention_flops += cost.attention_flops;
    }
    for (const Piece& piece : reads) {
      if (flops > 0) mine.operands.insert(piece);
      note_read(piece, group);
    }
    for (const Piece& piece : writes) {
      if (outlasts(piece)) mine.written.insert(piece);
      std::erase_if(writes_[piece.root], [&](const Write& older) {
        return older.piece.begin >= piece.begin && older.piece.end <= piece.end;
      });
      writes_[piece.root].push_back({piece, group});
    }
  }

  // Calls body(write) for what the graph wrote to bytes of `piece`.
  template <typename Body>
  void for_writes_of(const Piece& piece, Body&& body) const {
    const auto found = writes_.find(piece.root);
    if (found == writes_.end()) return;
    for (const Write& write : found->second) {
      if (write.piece.begin < piece.end && piece.begin < write.piece.end) body(write);
    }
  }

  void note_read(const Piece& piece, std::size_t group) {
    bool crosses = true;
    for_writes_of(piece, [&](const Write& write) {
      if (write.group == group) {
        crosses = false;
      } else {
        groups_[write.group].written.insert(write.piece);
      }
    });
    if (crosses) groups_[group].read.insert(piece);
  }

  std::size_t last_awaited(const std::vector<Piece>& reads) const {
    std::size_t last = 0;
    for (const Piece& piece : reads) {
      for_writes_of(piece, [&](const Write& write) {
        const int depth = groups_[write.group].depth, deepest = groups_[last].depth;
        if (depth > deepest || (depth == deepest && write.group > last)) last = write.group;
      });
    }
    return last;
  }

  std::size_t group_of_product(const std::vector<Piece>& reads) {
    const int depth = groups_[last_awaited(reads)].depth + 1;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].depth == depth && std::ranges::any_of(reads, [&](const Piece& piece) {
            return groups_[i].operands.contains(piece);
          })) {
        return i;
      }
    }
    groups_.emplace_back().depth = depth;
    return groups_.size() - 1;
  }

  const Graph& graph_;
  std::vector<Group> groups_;
  std::map<std::uint32_t, std::vector<Write>> writes_;  // by root: the latest, by group
};

double bytes_of(const std::set<Piece>& pieces) {
  double bytes = 0;
  for (const Piece& piece : pieces) bytes += static_cast<double>(piece.end - piece.begin);
  return bytes;
}

}  // namespace

FusionBound fusion_bound(const Graph& graph, const CallAccess& access, std::int64_t segment_tokens,
                         const Card& card) {
  FusionBound bound;
  const Grouping grouping(graph, access, segment_tokens, card);
  for (const Group& group : grouping.groups()) {
    const double bytes = bytes_of(group.read) + bytes_of(group.written);
    const double flops = group.bf16_flops + group.attention_flops + group.fp32_flops;
    const double compute = group.bf16_flops / card.fused_bf16_flops_per_second +
                           group.attention_flops / card.fused_attention_flops_per_second +
                           group.fp32_flops / card.fused_fp32_flops_per_second;
    bound.groups += flops > 0 || bytes > 0;
    bound.flops += flops;
    bound.bytes += bytes;
    bound.seconds += std::max(compute, bytes / card.fused_bytes_per_second);
  }
  return bound;
}

}  // namespace mulligan
