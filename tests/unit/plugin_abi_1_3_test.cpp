// A backend built with the headers of ABI 1.3 goes on working: it says no queue, so collectives go through the host.
#include <gtest/gtest.h>

#include "tests/support/plugins.h"

namespace mulligan {
namespace {

TEST(PluginAbi13, ABackendWithoutAQueueStillRuns) {
  const PluginHandle plugin = test_plugin_host().load(
      PluginKind::backend, "queueless_backend",
      std::filesystem::path(MULLIGAN_ABI_1_3_PLUGIN_DIRECTORY) / "mulligan_queueless_backend.so");
  EXPECT_EQ(plugin->abi(), "1.3");
  Backend backend(plugin, test_plugin_config(plugin));
  EXPECT_EQ(backend.queue().kind, MLG_QUEUE_NONE);
  backend.replace_kernel("old_kernel", "good.ptx", "run.toml:7");
  EXPECT_STREQ(backend.kernel_at(0)->entry, "good.ptx");
}

TEST(PluginAbi14, TodaysBackendsSayWhereTransfersStand) {
  EXPECT_EQ(make_cpu_backend(1)->queue().kind, MLG_QUEUE_HOST);
  EXPECT_EQ(make_plugin<Backend>(PluginKind::backend, "null")->queue().kind, MLG_QUEUE_NONE);
  EXPECT_EQ(make_plugin<Backend>(PluginKind::backend, "cuda", "device = \"emulated\"")->queue().kind,
            MLG_QUEUE_NONE);
}

}  // namespace
}  // namespace mulligan
