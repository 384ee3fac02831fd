// Plugins of tests carry tokens into scores which come before them: the row guard and the probe stop them.
#include <gtest/gtest.h>

#include <sstream>

#include "framework/graph/row_rules.h"
#include "tests/support/built.h"
#include "tests/support/sentence.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_smuggling_test {
namespace {

// The sentence with which a run is refused or void; empty when it runs.
std::string outcome(const TttRunner::Options& options) {
  const std::vector<std::uint16_t> tokens = made_up_stream({9, 14, 31, 7, 22});
  return refusal_of([&] {
    EXPECT_EQ(run_tiny({.options = options, .tokens = tokens}).report.sums.tokens, tokens.size() - 1);
  });
}

std::string smuggled(const std::string& how, int number = 0) {
  TttRunner::Options options = tiny_options(fmt::format("how = \"{}\"\nnumber = {}", how, number));
  options.adapter_plugin = "smuggling";
  options.adapter_file = (test_support::built("ttt_plugins") / "mulligan_smuggling.so").string();
  return outcome(options);
}

TEST(TttSmuggling, IsStopped) {
  const struct {
    const char* how;
    std::vector<int> numbers;
    const char* says;
  } ways[] = {// The adapter that turned 2.077 into 0.562 bits per byte, and its relatives.
              {"shifted_view", {0}, "would cut or shift tokens"},
              {"other_document", {0}, "would cut or shift tokens"},
              {"state", {0}, "keeps nothing but its declared adapters"},
              {"late", {0}, "the recording is over"},
              {"through_an_adapter", {0}, "writes into an adapter while a window is scored"},
              {"through_base_weights", {1, 2, 7, 12}, "is not among those that it was handed"},
              {"through_old_memory", {0}, "nothing has written"},
              // Kernels that mix rows.
              {"transposed_matmul", {0}, "sums over tokens"},
              {"tokens_as_parameter", {0}, "where a parameter belongs"},
              {"through_a_sum", {0}, "sum_f64 mixes rows"},
              {"attention", {0}, "attention_fwd mixes rows"},
              // The probe looks at every window and position of a plugin's kernel.
              {"kernel", {0}, "scores would be illegal"},
              {"kernel_by_length", {12}, "scores would be illegal"},
              {"kernel_by_position", {0, 3, 8, 10}, "scores would be illegal"}};
  for (const auto& way : ways) {
    for (const int number : way.numbers)
      EXPECT_TRUE(contains(smuggled(way.how, number), way.says)) << way.how << " " << number;
  }
  for (const char* honest : {"not_at_all", "honest_kernel"}) EXPECT_EQ(smuggled(honest), "");
}

TEST(TttSmuggling, AnOptimiserOfAdaptersNamesNothingButWhatItWasHanded) {
  const auto reaching = [](int value) {
    TttRunner::Options options = tiny_options();
    options.optimizer = "flawed_optimizer";
    options.optimizer_file =
        (test_support::built("flawed_plugins") / "mulligan_flawed_optimizer.so").string();
    options.optimizer_keys = fmt::format("foreign = {}", value);
    return outcome(options);
  };
  EXPECT_EQ(reaching(0), "");
  // Tokens, boundaries of the documents, targets, positions, weights of the model.
  for (const int value : {1, 2, 3, 4, 5, 6, 9}) EXPECT_TRUE(contains(reaching(value), "is not among those"));
}

// "in a, in? b, inout y; alpha": i, i, a. Without attributes that say so an inout is read and written: u.
std::string letters_of(const std::string& signature) {
  std::string arguments;
  int brackets = 0;
  for (const char c : signature.substr(0, signature.find(';'))) {
    brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (brackets == 0) arguments += c;
  }
  const bool adds =
      signature.find("accumulate_") != std::string::npos || signature.find("beta") != std::string::npos;
  std::string letters;
  std::istringstream stream(arguments);
  for (std::string argument; std::getline(stream, argument, ',');) {
    std::istringstream words(argument);
    std::string mode;
    words >> mode;
    if (mode == "in" || mode == "in?") letters += 'i';
    if (mode == "out" || mode == "out?") letters += 'o';
    if (mode == "inout" || mode == "inout?") letters += adds ? 'a' : 'u';
  }
  return letters;
}

// A kernel of the backend without a rule would be taken for a plugin's.
TEST(TttRowRules, EveryCoreKernelHasARuleThatFitsItsSignature) {
  const auto backend = make_test_backend(1);
  std::size_t kernels = 0;
  for (std::uint32_t i = 0; const mlg_kernel* kernel = backend->kernel_at(i); ++i, ++kernels) {
    const KernelRows* rows = rows_of_kernel(kernel->name);
    ASSERT_NE(rows, nullptr) << kernel->name << ": declare it with KernelRules, as kernels/*/op.cpp do";
    if (rows->rule == RowRule::mixing || rows->rule == RowRule::causal) continue;
    std::string letters(rows->arguments);
    for (char& letter : letters) letter = letter == 'p' ? 'i' : letter;
    EXPECT_EQ(letters, letters_of(kernel->signature)) << kernel->name << ": " << kernel->signature;
  }
  EXPECT_EQ(kernels, kernel_rows().size());
}

}  // namespace
}  // namespace mulligan::ttt_smuggling_test
