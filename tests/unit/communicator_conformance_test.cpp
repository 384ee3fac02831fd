// Each collective of every communicator plugin against its definition, for 1 to 4 ranks, which are threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tests/support/thread_world.h"
#include "tests/unit/communicator_worlds.h"

namespace mulligan::communicator_conformance_test {
namespace {

struct TransferCase {
  Collective kind;
  DType dtype;
  std::int64_t count;
  bool in_place = false;
  int root = 0;
  std::string text() const {
    return fmt::format("{} of {} {}{}{}", collective_name(kind), count, dtype_name(dtype),
                       in_place ? " in place" : "", root == 0 ? "" : fmt::format(" of rank {}", root));
  }
};

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

// Every collective with every dtype that it takes, odd and empty and long counts, in place and not.
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

// Makes the tensors "from<name>" and "to<name>" (in place: one). Three more elements follow those that the transfer concerns.
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

// What differs in the tensors of that case after the transfer, or empty.
std::string case_problem(const TensorStore& store, const TensorStore& expected, const TransferCase& one,
                         const std::string& name, int rank) {
  if (one.kind == Collective::reduce && rank != one.root) return {};  // the others get nothing
  for (const std::string& tensor : {"from" + name, (one.in_place ? "from" : "to") + name}) {
    Bytes bytes(static_cast<std::size_t>(store.type(tensor).bytes())), other(bytes.size());
    store.download(tensor, bytes);
    expected.download(tensor, other);
    const auto [wrong, right] = std::ranges::mismatch(bytes, other);
    if (wrong == bytes.end()) continue;
    return fmt::format("{} on rank {}: byte {} of {} of '{}' is {}, not {}", one.text(), rank,
                       wrong - bytes.begin(), bytes.size(), tensor, static_cast<int>(*wrong),
                       static_cast<int>(*right));
  }
  return {};
}

// Compares each communicator with ThreadWorld: both move equal tensors, and the results must be equal.
class CommunicatorConformance : public testing::TestWithParam<CommunicatorWorld> {
 protected:
  // One rank of both.
  struct Pair {
    Communicator& communicator;
    TensorStore& store;
    Communicator& plain;
    TensorStore& expected;

    void create(const TransferCase& one, const std::string& name) {
      for (TensorStore* each : {&store, &expected})
        create_case(*each, one, name, plain.rank(), plain.world_size());
      plain.prepare(expected, {transfer_of(one, name)})->run();
    }
    void check(const TransferCase& one, const std::string& name) {
      const std::string problem = case_problem(store, expected, one, name, plain.rank());
      if (!problem.empty()) throw run_error("{} ranks: {}", plain.world_size(), problem);
    }
  };
  // Throws what `body` throws on one of `size` ranks.
  void run(int size, const std::function<void(Pair)>& body) {
    ThreadWorld(size).run([&](int, Communicator& plain) {
      const std::unique_ptr<Backend> backend = make_backend(GetParam()), host = make_cpu_backend(1);
      TensorStore store(*backend), expected(*host);
      const std::unique_ptr<Communicator> communicator =
          make_communicator(GetParam(), plain.group(), *backend);
      body({*communicator, store, plain, expected});
      plain.group().barrier();
    });
  }
  int most() const { return GetParam().most_ranks; }
};

// Each transfer in a batch of its own, and one batch of everything at once.
TEST_P(CommunicatorConformance, EveryCollectiveGivesWhatItsDefinitionSays) {
  for (int size = 1; size <= most(); ++size) {
    for (const bool together : {false, true}) {
      run(size, [&](Pair rank) {
        const std::vector<TransferCase> cases = transfer_cases(size);
        std::vector<std::vector<Transfer>> batches(together ? 1 : cases.size());
        for (std::size_t i = 0; i < cases.size(); ++i) {
          rank.create(cases[i], std::to_string(i));
          batches[together ? 0 : i].push_back(transfer_of(cases[i], std::to_string(i)));
        }
        for (const std::vector<Transfer>& transfers : batches)
          rank.communicator.prepare(rank.store, transfers)->run();
        for (std::size_t i = 0; i < cases.size(); ++i) rank.check(cases[i], std::to_string(i));
        const TransferCount count = rank.communicator.transfers();
        if (!together && (count.submitted != cases.size() || count.completed != cases.size())) {
          throw run_error("{} transfers were submitted and {} completed, of {}", count.submitted,
                          count.completed, cases.size());
        }
      });
    }
  }
}

TEST_P(CommunicatorConformance, ManyBatchesAreUnderWayAtOnceAndAreJoinedInAnyOrder) {
  run(most(), [&](Pair rank) {
    constexpr int kBatches = 9;
    std::vector<std::unique_ptr<TransferBatch>> batches;
    std::vector<TransferCase> cases;
    for (int i = 0; i < kBatches; ++i) {
      cases.push_back({static_cast<Collective>(i % 5), MLG_F32, 1 + 20011 * (i % 4), false, 0});
      rank.create(cases.back(), std::to_string(i));
      batches.push_back(
          rank.communicator.prepare(rank.store, {transfer_of(cases.back(), std::to_string(i))}));
    }
    for (int turn = 0; turn < 3; ++turn) {
      for (const auto& batch : batches) batch->submit();
      for (int i = kBatches; i-- > 0;) batches[static_cast<std::size_t>(i)]->join();
      for (int i = 0; i < kBatches; ++i) rank.check(cases[static_cast<std::size_t>(i)], std::to_string(i));
    }
  });
}

// What a later transfer of the same batch order sends is what an earlier one gave.
TEST_P(CommunicatorConformance, BatchesSeeTheResultsOfThoseBefore) {
  run(most(), [&](Pair rank) {
    const auto size = static_cast<float>(most());
    rank.store.create("x", TensorType(MLG_F32, {501}));
    rank.store.upload("x", std::vector<float>(501, 1));
    const auto batch = rank.communicator.prepare(rank.store, {{Collective::all_reduce, "x", "x", 501, 0}});
    for (int turn = 0; turn < 4; ++turn) batch->run();
    const float expected = size * size * size * size;
    for (const float value : rank.store.download_as<float>("x")) {
      if (value != expected) throw run_error("{} is not {}", value, expected);
    }
  });
}

// Sums that bf16 cannot hold are rounded, and come out the same on every rank.
TEST_P(CommunicatorConformance, SumsOfBf16AreRoundedTheSameOnAllRanks) {
  std::vector<std::vector<std::uint16_t>> results(static_cast<std::size_t>(most()));
  constexpr std::int64_t kCount = 5003;
  const auto value = [](int rank, std::int64_t i) {
    return static_cast<float>(128 + (i * 3 + rank * 11) % 127) * (i % 2 ? 1.0f : -0.125f);
  };
  run(most(), [&](Pair pair) {
    const int rank = pair.communicator.rank();
    std::vector<std::uint16_t> values(kCount);
    for (std::int64_t i = 0; i < kCount; ++i) {
      values[static_cast<std::size_t>(i)] =
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value(rank, i)) >> 16);
    }
    pair.store.create("x", TensorType(MLG_BF16, {kCount}));
    pair.store.upload("x", values);
    pair.communicator.prepare(pair.store, {{Collective::all_reduce, "x", "x", kCount, 0}})->run();
    results[static_cast<std::size_t>(rank)] = pair.store.download_as<std::uint16_t>("x");
  });
  for (const auto& result : results) EXPECT_EQ(result, results.front());
  for (std::int64_t i = 0; i < kCount; ++i) {
    float exact = 0;
    for (int rank = 0; rank < most(); ++rank) exact += value(rank, i);
    const auto bits = static_cast<std::uint32_t>(results.front().at(static_cast<std::size_t>(i))) << 16;
    // Half of the last place for each addition.
    ASSERT_NEAR(std::bit_cast<float>(bits), exact, std::abs(exact) / 256 * static_cast<float>(most() - 1))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Plugins, CommunicatorConformance, testing::ValuesIn(communicator_worlds()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace mulligan::communicator_conformance_test
