// A communicator built with the headers of ABI 1.4, the first with that kind, goes on working: between ranks,
// and on a backend of today.
#include <gtest/gtest.h>

#include "framework/check/plugin_check.h"
#include "framework/ranks/plugin_communicator.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/thread_group.h"
#include "tests/unit/communicator_cases.h"

namespace mulligan {
namespace {

PluginHandle mailbox() {
  return test_plugin_host().load(
      PluginKind::communicator, "mailbox_communicator",
      std::filesystem::path(MULLIGAN_ABI_1_4_PLUGIN_DIRECTORY) / "mulligan_mailbox_communicator.so");
}
std::unique_ptr<Communicator> make_mailbox(HostGroup& group, Backend& backend) {
  const PluginHandle plugin = mailbox();
  return make_plugin_communicator(std::make_unique<CommunicatorPlugin>(plugin, test_plugin_config(plugin)),
                                  group, backend);
}

TEST(PluginAbi14, ACommunicatorGivesWhatEachCollectiveSays) {
  EXPECT_EQ(mailbox()->abi(), "1.4");
  for (const int size : {1, 2, 3}) {
    const auto sentences = run_ranks(size, [&](HostGroup& group) {
      const std::unique_ptr<Backend> backend = make_cpu_backend(1);
      TensorStore store(*backend);
      const std::unique_ptr<Communicator> communicator = make_mailbox(group, *backend);
      std::uint64_t done = 0;
      for (const TransferCase& one : transfer_cases(size)) {
        if (one.count > 1021) continue;
        const std::string name = std::to_string(done++);
        create_case(store, one, name, group.rank(), size);
        const auto batch = communicator->prepare(store, {transfer_of(one, name)});
        batch->submit();
        batch->join();
        const std::string problem = case_problem(store, one, name, group.rank(), size);
        if (!problem.empty()) throw run_error("{}", problem);
      }
      // It does not say what has begun: as much as was submitted.
      const TransferCount count = communicator->transfers();
      if (done < 50 || count.submitted != done || count.completed != done)
        throw run_error("{} and {} of {} transfers", count.submitted, count.completed, done);
      group.barrier();
    });
    for (const std::string& sentence : sentences) EXPECT_EQ(sentence, "") << size << " ranks";
  }
}

TEST(PluginAbi14, ACommunicatorsOwnSentenceArrives) {
  const std::unique_ptr<Backend> backend =
      make_plugin<Backend>(PluginKind::backend, "cuda", "device = \"emulated\"");
  const std::unique_ptr<HostGroup> group = make_single_group();
  TensorStore store(*backend);
  store.create("x", TensorType(MLG_F32, {3}));
  // What is not memory of the host goes through buffers that are.
  const std::unique_ptr<Communicator> communicator = make_mailbox(*group, *backend);
  const auto batch = communicator->prepare(store, {{Collective::all_reduce, "x", "x", 3, 0}});
  batch->submit();
  batch->join();
  communicator->abort();
  const std::string text = sentence_of([&] { batch->submit(); });
  EXPECT_NE(text.find("mailbox_communicator"), std::string::npos) << text;
  EXPECT_NE(text.find("has failed or was aborted"), std::string::npos) << text;
}

TEST(PluginAbi14, ACommunicatorPassesItsChecks) {
  const CheckList list = check_plugin(test_plugin_host(), mailbox());
  EXPECT_GE(list.lines().size(), 4u);
  for (const CheckLine& line : list.lines()) EXPECT_EQ(line.problem, "") << line.what;
}

}  // namespace
}  // namespace mulligan
