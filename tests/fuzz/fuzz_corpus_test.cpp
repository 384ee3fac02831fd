// Every input that fuzzing kept, replayed in an ordinary build: crashes of the past stay fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/core/file.h"
#include "tests/fuzz/fuzz_target.h"

namespace mulligan::fuzz::fuzz_corpus_test {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  void (*run)(std::string_view);
};

// How GoogleTest names a target in its messages.
void PrintTo(const Target& target, std::ostream* out) {
  *out << target.name;
}

class FuzzCorpus : public testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, EveryInputIsReadOrRefused) {
  std::vector<fs::path> inputs;
  for (const auto& entry : fs::directory_iterator(fs::path(MULLIGAN_FUZZ_CORPUS) / GetParam().name)) {
    inputs.push_back(entry.path());
  }
  std::ranges::sort(inputs);
  ASSERT_GE(inputs.size(), 5U);
  for (const fs::path& input : inputs) {
    SCOPED_TRACE(input.filename().string());
    const std::string bytes = read_file(input);
    EXPECT_NO_THROW(GetParam().run(bytes));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus,
                         testing::Values(Target{"toml", toml}, Target{"shard", shard},
                                         Target{"data_manifest", data_manifest},
                                         Target{"checkpoint", checkpoint}, Target{"metrics", metrics},
                                         Target{"artifact", artifact}, Target{"codes", codes},
                                         Target{"rendezvous", rendezvous},
                                         Target{"task_vectors", task_vectors}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mulligan::fuzz::fuzz_corpus_test
