// Each collective of every communicator plugin against its definition, for 1 to 4 ranks, which are threads.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/communicator_cases.h"
#include "tests/unit/communicator_worlds.h"

namespace mulligan::communicator_conformance_test {
namespace {

class CommunicatorConformance : public testing::TestWithParam<CommunicatorWorld> {
 protected:
  // What each rank of `size` says about `body(communicator, store)`: a problem, or empty.
  template <typename Body>
  void run(int size, Body&& body) {
    expect_ranks(size, [&](HostGroup& group) {
      const std::unique_ptr<Backend> backend = make_backend(GetParam());
      TensorStore store(*backend);
      const std::unique_ptr<Communicator> communicator = make_communicator(GetParam(), group, *backend);
      body(*communicator, store);
      group.barrier();
    });
  }
  int most() const { return GetParam().most_ranks; }
};

void require(const std::string& problem) {
  if (!problem.empty()) throw run_error("{}", problem);
}

// Each transfer in a batch of its own, and one batch of everything at once.
TEST_P(CommunicatorConformance, EveryCollectiveGivesWhatItsDefinitionSays) {
  for (int size = 1; size <= most(); ++size) {
    for (const bool together : {false, true}) {
      run(size, [&](Communicator& communicator, TensorStore& store) {
        const int rank = communicator.rank();
        const std::vector<TransferCase> cases = transfer_cases(size);
        std::vector<std::vector<Transfer>> batches(together ? 1 : cases.size());
        for (std::size_t i = 0; i < cases.size(); ++i) {
          create_case(store, cases[i], std::to_string(i), rank, size);
          batches[together ? 0 : i].push_back(transfer_of(cases[i], std::to_string(i)));
        }
        for (const std::vector<Transfer>& transfers : batches) communicator.prepare(store, transfers)->run();
        for (std::size_t i = 0; i < cases.size(); ++i)
          require(case_problem(store, cases[i], std::to_string(i), rank, size));
        const TransferCount count = communicator.transfers();
        if (!together && (count.submitted != cases.size() || count.completed != cases.size())) {
          throw run_error("{} transfers were submitted and {} completed, of {}", count.submitted,
                          count.completed, cases.size());
        }
      });
    }
  }
}

TEST_P(CommunicatorConformance, ManyBatchesAreUnderWayAtOnceAndAreJoinedInAnyOrder) {
  run(most(), [&](Communicator& communicator, TensorStore& store) {
    const int rank = communicator.rank(), size = communicator.world_size();
    constexpr int kBatches = 9;
    std::vector<std::unique_ptr<TransferBatch>> batches;
    std::vector<TransferCase> cases;
    for (int i = 0; i < kBatches; ++i) {
      cases.push_back({static_cast<Collective>(i % 5), MLG_F32, 1 + 20011 * (i % 4), false, 0});
      create_case(store, cases.back(), std::to_string(i), rank, size);
      batches.push_back(communicator.prepare(store, {transfer_of(cases.back(), std::to_string(i))}));
    }
    for (int turn = 0; turn < 3; ++turn) {
      for (const auto& batch : batches) batch->submit();
      for (int i = kBatches; i-- > 0;) batches[static_cast<std::size_t>(i)]->join();
      for (int i = 0; i < kBatches; ++i) {
        require(case_problem(store, cases[static_cast<std::size_t>(i)], std::to_string(i), rank, size));
      }
    }
  });
}

// What a later transfer of the same batch order sends is what an earlier one gave.
TEST_P(CommunicatorConformance, BatchesSeeTheResultsOfThoseBefore) {
  run(most(), [&](Communicator& communicator, TensorStore& store) {
    const auto size = static_cast<float>(communicator.world_size());
    store.create("x", TensorType(MLG_F32, {501}));
    store.upload("x", std::vector<float>(501, 1));
    const auto batch = communicator.prepare(store, {{Collective::all_reduce, "x", "x", 501, 0}});
    for (int turn = 0; turn < 4; ++turn) batch->run();
    const float expected = size * size * size * size;
    for (const float value : store.download_as<float>("x")) {
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
  run(most(), [&](Communicator& communicator, TensorStore& store) {
    const int rank = communicator.rank();
    std::vector<std::uint16_t> values(kCount);
    for (std::int64_t i = 0; i < kCount; ++i) {
      values[static_cast<std::size_t>(i)] =
          static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value(rank, i)) >> 16);
    }
    store.create("x", TensorType(MLG_BF16, {kCount}));
    store.upload("x", values);
    communicator.prepare(store, {{Collective::all_reduce, "x", "x", kCount, 0}})->run();
    results[static_cast<std::size_t>(rank)] = store.download_as<std::uint16_t>("x");
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
