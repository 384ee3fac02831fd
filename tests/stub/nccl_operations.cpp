#include "tests/stub/nccl_operations.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mulligan/kernel.hpp>
#include <optional>
#include <string_view>

#include "plugins/communicators/nccl/library.h"

namespace stub {
namespace {

using namespace mulligan::nccl_ranks;

struct Shown {
  Kind kind;
  int dtype, peer;
  std::uint64_t count, bytes;  // elements of the call; shown here
};
struct Received : Shown {
  std::string_view data;
};

std::size_t bytes_of(int dtype) {
  return dtype == kFloat64 ? 8 : dtype == kFloat32 ? 4 : dtype == kBfloat16 ? 2 : 1;
}

std::size_t bytes_of(const Operation& one) {
  return one.count * bytes_of(one.dtype);
}

std::vector<Received> parse(std::string_view text) {
  std::vector<Received> all;
  while (text.size() >= sizeof(Shown)) {
    Received one{};
    std::memcpy(static_cast<Shown*>(&one), text.data(), sizeof(Shown));
    text.remove_prefix(sizeof(Shown));
    one.data = text.substr(0, one.bytes);
    text.remove_prefix(one.data.size());
    all.push_back(one);
  }
  return all;
}

template <typename Value>
void add(std::string_view from, std::string& to) {
  for (std::size_t at = 0; at + sizeof(Value) <= to.size(); at += sizeof(Value)) {
    Value a, b;
    std::memcpy(&a, to.data() + at, sizeof(Value));
    std::memcpy(&b, from.data() + at, sizeof(Value));
    a = static_cast<Value>(a + b);
    std::memcpy(to.data() + at, &a, sizeof(Value));
  }
}

using Ranks = std::vector<std::vector<Received>>;

// The sum over ranks, in their order, of `bytes` bytes after the first `skip` of operation `index`.
std::string sum(const Ranks& ranks, std::size_t index, std::size_t skip, std::size_t bytes) {
  std::string result;
  for (const auto& rank : ranks) {
    const std::string_view part = rank[index].data.substr(skip, bytes);
    if (result.empty()) {
      result = part;
    } else if (rank[index].dtype == kFloat64) {
      add<double>(part, result);
    } else if (rank[index].dtype == kBfloat16) {
      add<mulligan::sdk::bfloat16>(part, result);
    } else {
      add<float>(part, result);
    }
  }
  return result;
}

// What `peer` sent to `rank` by its send number `number`.
std::optional<std::string> sent(const Ranks& ranks, int peer, int rank, std::size_t number) {
  for (const Received& one : ranks[static_cast<std::size_t>(peer)]) {
    if (one.kind == Kind::send && one.peer == rank && number-- == 0) return std::string(one.data);
  }
  return std::nullopt;
}

bool is_collective(Kind kind) {
  return kind != Kind::send && kind != Kind::receive;
}

std::string differs(std::size_t number, Kind kind, const char* argument, int rank, auto value, auto first) {
  return std::string(name_of(kind)) + ", number " + std::to_string(number + 1) + " of its group: argument " +
         argument + " is " + std::to_string(value) + " on rank " + std::to_string(rank) + " and " +
         std::to_string(first) + " on rank 0";
}

// How the ranks' collectives differ; empty where they do not.
std::string difference(const Ranks& ranks) {
  for (std::size_t number = 0; number < ranks.size(); ++number) {
    const auto& rank = ranks[number];
    const int who = static_cast<int>(number);
    for (std::size_t i = 0; i < std::min(rank.size(), ranks[0].size()); ++i) {
      const Received &a = rank[i], &b = ranks[0][i];
      if (!is_collective(a.kind) && !is_collective(b.kind)) continue;
      if (a.kind != b.kind)
        return std::string(name_of(a.kind)) + ", number " + std::to_string(i + 1) + " of its group on rank " +
               std::to_string(who) + ", is " + name_of(b.kind) + " on rank 0";
      if (a.dtype != b.dtype) return differs(i, a.kind, "datatype", who, a.dtype, b.dtype);
      if (a.count != b.count) return differs(i, a.kind, "count", who, a.count, b.count);
      if (a.peer != b.peer) return differs(i, a.kind, "root", who, a.peer, b.peer);
    }
    if (rank.size() != ranks[0].size())
      return "ncclGroupEnd: the group has " + std::to_string(rank.size()) + " calls on rank " +
             std::to_string(who) + " and " + std::to_string(ranks[0].size()) + " on rank 0";
  }
  return {};
}

}  // namespace

std::string shown(const std::vector<Operation>& group, int rank, int size) {
  std::string text;
  for (const Operation& one : group) {
    const std::uint64_t bytes = bytes_read(one, rank, size);
    const Shown head{one.kind, one.dtype, one.peer, one.count, bytes};
    text.append(reinterpret_cast<const char*>(&head), sizeof head);
    if (bytes > 0) text.append(static_cast<const char*>(one.from), bytes);
  }
  return text;
}

std::string take(const std::vector<std::string>& shown_by_rank, const std::vector<Operation>& group,
                 int rank) {
  Ranks ranks;
  for (const std::string& text : shown_by_rank) ranks.push_back(parse(text));
  if (std::string text = difference(ranks); !text.empty()) return text;
  std::vector<std::optional<std::string>> results;
  std::map<int, std::size_t> received;  // so many from each peer
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Operation& one = group[i];
    const std::size_t bytes = bytes_of(one);
    std::optional<std::string> result = "";
    if (one.kind == Kind::all_reduce) result = sum(ranks, i, 0, bytes);
    if (one.kind == Kind::reduce_scatter)
      result = sum(ranks, i, static_cast<std::size_t>(rank) * bytes, bytes);
    if (one.kind == Kind::reduce && one.peer == rank) result = sum(ranks, i, 0, bytes);
    if (one.kind == Kind::broadcast) result = ranks[static_cast<std::size_t>(one.peer)][i].data;
    if (one.kind == Kind::receive) result = sent(ranks, one.peer, rank, received[one.peer]++);
    if (one.kind == Kind::all_gather) {
      for (const auto& other : ranks) *result += other[i].data;
    }
    if (!result)
      return "ncclRecv, number " + std::to_string(i + 1) + " of its group on rank " + std::to_string(rank) +
             ": rank " + std::to_string(one.peer) + " sends nothing to it";
    if (one.kind == Kind::receive && result->size() != bytes)
      return "ncclRecv, number " + std::to_string(i + 1) + " of its group on rank " + std::to_string(rank) +
             ": argument count is of " + std::to_string(bytes) + " bytes, and rank " +
             std::to_string(one.peer) + " sends " + std::to_string(result->size());
    results.push_back(std::move(result));
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!results[i]->empty()) std::memcpy(group[i].to, results[i]->data(), results[i]->size());
  }
  return {};
}

const char* name_of(Kind kind) {
  constexpr const char* names[] = {"ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast",
                                   "ncclReduce",    "ncclSend",          "ncclRecv"};
  return names[static_cast<int>(kind)];
}

std::size_t bytes_read(const Operation& one, int rank, int size) {
  if (one.kind == Kind::receive || (one.kind == Kind::broadcast && one.peer != rank)) return 0;
  return bytes_of(one) * (one.kind == Kind::reduce_scatter ? static_cast<std::size_t>(size) : 1);
}

std::size_t bytes_written(const Operation& one, int rank, int size) {
  if (one.kind == Kind::send || (one.kind == Kind::reduce && one.peer != rank)) return 0;
  return bytes_of(one) * (one.kind == Kind::all_gather ? static_cast<std::size_t>(size) : 1);
}

}  // namespace stub
