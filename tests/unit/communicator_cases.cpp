#include "tests/unit/communicator_cases.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace mulligan {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int64_t kBehind = 3;  // elements that no transfer may touch

bool reduces(Collective kind) {
  return kind == Collective::all_reduce || kind == Collective::reduce_scatter || kind == Collective::reduce;
}

// Sums of up to eight of them are exact in bf16, in any order.
int number(int rank, std::int64_t index) {
  return static_cast<int>((index * 7 + rank * 13 + index / 5) % 29) - 14;
}

void store_number(DType dtype, std::byte* to, int value) {
  const auto single = static_cast<float>(value);
  const auto put = [&](auto typed) { std::memcpy(to, &typed, sizeof typed); };
  if (dtype == MLG_F32) put(single);
  if (dtype == MLG_F64) put(static_cast<double>(value));
  if (dtype == MLG_BF16) put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(single) >> 16));
}

// What rank `rank` has at `index` before the transfer: for sums a number, for moves bytes of any kind.
void store_element(const TransferCase& one, std::byte* to, int rank, std::int64_t index) {
  if (reduces(one.kind)) return store_number(one.dtype, to, number(rank, index));
  for (std::size_t i = 0; i < static_cast<std::size_t>(dtype_size(one.dtype)); ++i) {
    to[i] = static_cast<std::byte>(static_cast<std::size_t>(index) * 31 + i * 101 +
                                   static_cast<unsigned>(rank) * 57 + 1);
  }
}

Bytes before(const TransferCase& one, int rank, std::int64_t elements) {
  const auto size = static_cast<std::size_t>(dtype_size(one.dtype));
  Bytes bytes(static_cast<std::size_t>(elements) * size);
  for (std::int64_t i = 0; i < elements; ++i) {
    store_element(one, bytes.data() + static_cast<std::size_t>(i) * size, rank, i);
  }
  return bytes;
}

std::int64_t from_elements(const TransferCase& one, int world_size) {
  const bool all = one.kind == Collective::reduce_scatter || one.kind == Collective::all_to_all ||
                   (one.kind == Collective::all_gather && one.in_place);
  return one.count * (all ? world_size : 1) + kBehind;
}
std::int64_t to_elements(const TransferCase& one, int world_size) {
  const bool all = one.kind == Collective::all_gather || one.kind == Collective::all_to_all;
  return one.count * (all ? world_size : 1) + kBehind;
}

// The tensor `to` after the transfer; in place it is the tensor `from`.
Bytes after(const TransferCase& one, int rank, int world_size) {
  const auto size = static_cast<std::size_t>(dtype_size(one.dtype));
  Bytes result = one.in_place ? before(one, rank, from_elements(one, world_size))
                              : Bytes(static_cast<std::size_t>(to_elements(one, world_size)) * size);
  const auto at = [&](std::int64_t index) { return result.data() + static_cast<std::size_t>(index) * size; };
  for (std::int64_t i = 0; i < one.count; ++i) {
    if (reduces(one.kind)) {
      const bool scatters = one.kind == Collective::reduce_scatter;
      const std::int64_t place = scatters ? rank * one.count + i : i;
      int sum = 0;
      for (int other = 0; other < world_size; ++other) sum += number(other, place);
      store_number(one.dtype, at(scatters && !one.in_place ? i : place), sum);
    } else if (one.kind == Collective::broadcast) {
      store_element(one, at(i), one.root, i);
    } else {
      for (int other = 0; other < world_size; ++other) {
        // A gathered share lay at the start of its tensor, or in place at its own.
        const bool gathers = one.kind == Collective::all_gather;
        const std::int64_t place =
            gathers ? (one.in_place ? other * one.count + i : i) : rank * one.count + i;
        store_element(one, at(other * one.count + i), other, place);
      }
    }
  }
  return result;
}

std::string tensor_problem(const TensorStore& store, const std::string& name, const Bytes& expected) {
  Bytes bytes(expected.size());
  store.download(name, bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == expected[i]) continue;
    return fmt::format("byte {} of {} of '{}' is {}, not {}", i, bytes.size(), name,
                       static_cast<int>(bytes[i]), static_cast<int>(expected[i]));
  }
  return {};
}

}  // namespace

std::string TransferCase::text() const {
  return fmt::format("{} of {} {}{}{}", collective_name(kind), count, dtype_name(dtype),
                     in_place ? " in place" : "", root == 0 ? "" : fmt::format(" of rank {}", root));
}

std::vector<TransferCase> transfer_cases(int world_size) {
  std::vector<TransferCase> cases;
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                Collective::all_to_all, Collective::broadcast, Collective::reduce}) {
    for (const DType dtype :
         {MLG_F32, MLG_BF16, MLG_F64, MLG_F16, MLG_I32, MLG_I64, MLG_U16, MLG_U8, MLG_I8}) {
      const bool sums = dtype == MLG_F32 || dtype == MLG_BF16 || dtype == MLG_F64;
      if (reduces(kind) && !sums) continue;
      for (const bool in_place : {false, true}) {
        if (in_place && kind == Collective::all_to_all) continue;
        if (!in_place && kind == Collective::reduce) continue;
        const bool rooted = kind == Collective::broadcast || kind == Collective::reduce;
        const int root = rooted ? world_size - 1 : 0;
        for (const std::int64_t count : {0, 1, 3, 1021})
          cases.push_back({kind, dtype, count, in_place, root});
        // Longer than what libraries and plugins cut into pieces.
        if (dtype == MLG_BF16) cases.push_back({kind, dtype, 40001, in_place, root});
        if (dtype == MLG_F32 && !in_place) cases.push_back({kind, dtype, 270001, in_place, root});
      }
    }
  }
  cases.push_back({Collective::all_reduce, MLG_F32, 1100001, true, 0});
  return cases;
}

void create_case(TensorStore& store, const TransferCase& one, const std::string& name, int rank,
                 int world_size) {
  const std::int64_t elements = from_elements(one, world_size);
  store.create("from" + name, TensorType(one.dtype, {elements}));
  store.upload("from" + name, before(one, rank, elements));
  if (!one.in_place) store.create("to" + name, TensorType(one.dtype, {to_elements(one, world_size)}));
}

Transfer transfer_of(const TransferCase& one, const std::string& name) {
  return {one.kind, "from" + name, (one.in_place ? "from" : "to") + name, one.count, one.root};
}

std::string case_problem(const TensorStore& store, const TransferCase& one, const std::string& name, int rank,
                         int world_size) {
  if (one.kind == Collective::reduce && rank != one.root) return {};  // the others get nothing
  const std::string result = (one.in_place ? "from" : "to") + name;
  std::string problem = tensor_problem(store, result, after(one, rank, world_size));
  if (problem.empty() && !one.in_place) {
    problem = tensor_problem(store, "from" + name, before(one, rank, from_elements(one, world_size)));
  }
  return problem.empty() ? problem
                         : fmt::format("{} on rank {} of {}: {}", one.text(), rank, world_size, problem);
}

}  // namespace mulligan
