// run.determinism = "run" is taken only where the backend promises that a repeated run gives the same bits.
#include <gtest/gtest.h>

#include "framework/core/error.h"
#include "framework/run/run_plugins.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end {
namespace {

RunPlugins make(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), "run.determinism=run");
  LoadedConfig loaded = TinyRun::config_without_data(overrides);
  resolve_run_plugins(loaded, test_plugin_host());
  return make_run_plugins(loaded, test_plugin_host());
}

TEST(Determinism, BackendsThatPromiseItAreTaken) {
  EXPECT_TRUE(make({"backend.plugin=cpu"}).backend->repeats());
  EXPECT_TRUE(make({"backend.plugin=cuda", "backend.device=emulated"}).backend->repeats());
}

// The cuda backend's library of attention may add in any order: it is left out of such a run, unless the user
// asks for it all the same.
TEST(Determinism, IsPassedOnToTheBackend) {
  const std::vector<std::string> cuda = {"backend.plugin=cuda", "backend.device=emulated"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), cuda.begin(), cuda.end());
    return more;
  };
  EXPECT_FALSE(make(with({"run.determinism=off"})).backend->repeats());
  EXPECT_TRUE(make(with({"run.determinism=off", "backend.attention=own"})).backend->repeats());
  EXPECT_TRUE(make(with({"run.determinism=off", "backend.deterministic=true"})).backend->repeats());
  EXPECT_THROW(make(with({"backend.deterministic=false"})), Error);
}

TEST(Determinism, ABackendThatPromisesNothingIsRefused) {
  const std::string path = std::string("backend.path=") + MULLIGAN_OLD_BACKEND;
  try {
    make({"backend.plugin=backend_abi_1_0", path});
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_configuration);
    const std::string sentence = error.what();
    EXPECT_NE(sentence.find("run.determinism = \"run\""), sentence.npos) << sentence;
    EXPECT_NE(sentence.find("backend_abi_1_0"), sentence.npos) << sentence;
  }
  EXPECT_FALSE(make({"backend.plugin=backend_abi_1_0", path, "run.determinism=off"}).backend->repeats());
}

}  // namespace
}  // namespace mulligan::end_to_end
