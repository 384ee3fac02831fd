// Which communicator a run gets, and that it is part of what the run says of itself.
#include <gtest/gtest.h>

#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/thread_group.h"
#include "tests/unit/config_testing.h"

namespace mulligan::run_communicator_test {
namespace {

LoadedConfig configuration(const std::string& more = "") {
  return parse_run_config(kSmallConfig + more, "test.toml");
}

// Two ranks that add what they have; returns the loaded configuration of rank 0.
LoadedConfig add_over_two_ranks(const std::string& more) {
  LoadedConfig first = configuration(more);
  const auto sentences = run_ranks(2, [&](HostGroup& group) {
    LoadedConfig loaded = configuration(more);
    PluginHost host(plugin_places({}));
    const std::unique_ptr<Backend> backend = make_cpu_backend(1);
    TensorStore store(*backend);
    store.create("x", TensorType(MLG_F32, {5}));
    store.upload("x", std::vector<float>(5, 1.5f));
    const auto communicator = make_run_communicator(loaded, host, group, *backend);
    communicator->prepare(store, {{Collective::all_reduce, "x", "x", 5, 0}})->run();
    EXPECT_EQ(store.download_as<float>("x"), std::vector<float>(5, 3.0f));
    group.barrier();
    if (group.rank() == 0) first = std::move(loaded);
  });
  for (const std::string& sentence : sentences) EXPECT_EQ(sentence, "");
  return first;
}

// Why `group` gets no communicator with this more of a configuration.
std::string refusal(HostGroup& group, const std::string& more) {
  LoadedConfig loaded = configuration(more);
  PluginHost host(plugin_places({}));
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  return sentence_of([&] { make_run_communicator(loaded, host, group, *backend); });
}

#ifdef MULLIGAN_HAS_GLOO
TEST(RunCommunicator, SeveralRanksOnTheCpuTakeGlooAndSaySo) {
  const LoadedConfig loaded = add_over_two_ranks("");
  ASSERT_TRUE(loaded.config.communicator.has_value());
  EXPECT_EQ(loaded.config.communicator->plugin, "gloo");
  EXPECT_EQ(loaded.plugin("communicator").plugin(), "gloo");
  EXPECT_EQ(plugin_tables(loaded.config)[3].table->section, "communicator");
}

TEST(RunCommunicator, ItsKeysAreThoseOfTheTable) {
  add_over_two_ranks("[communicator]\nplugin = \"gloo\"\ntimeout = 7.5\n");
  ThreadGroups groups(2);
  EXPECT_TRUE(contains(refusal(groups.group(0), "[communicator]\nplugin = \"gloo\"\ntimeuot = 7.5\n"),
                       "did you mean 'communicator.timeout'"));
}
#endif

TEST(RunCommunicator, OneRankNeedsNone) {
  LoadedConfig loaded = configuration();
  PluginHost host({});
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const auto group = make_single_group();
  const auto communicator = make_run_communicator(loaded, host, *group, *backend);
  EXPECT_EQ(communicator->world_size(), 1);
  EXPECT_TRUE(host.loaded().empty());
  EXPECT_FALSE(loaded.config.communicator.has_value());
}

TEST(RunCommunicator, OneRankTakesWhatIsNamed) {
  EXPECT_TRUE(contains(refusal(*make_single_group(), "[communicator]\nplugin = \"nccl\"\n"),
                       "'nccl' moves memory of a GPU"));
}

}  // namespace
}  // namespace mulligan::run_communicator_test
