// [[backend.kernels]] as it is read from a configuration.
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/config/config_report.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan::triton_rows_test {
namespace {

const std::string kRun = kSmallConfig + "[backend]\nplugin = \"cuda\"\n";

LoadedConfig parse(const std::string& rows) {
  return parse_run_config(kRun + rows, "configs/run.toml");
}

std::string refusal(const std::string& rows) {
  return refusal_of(ExitCode::bad_configuration, [&] { parse(rows); });
}

constexpr const char* kRow = "[[backend.kernels]]\nmatch = \"softcap_ce_fwd\"\npath = \"kernels/a.ptx\"\n";

TEST(KernelRows, PathsAreTakenFromTheFolderOfTheFile) {
  const LoadedConfig loaded = parse(kRow);
  ASSERT_EQ(loaded.config.kernels.size(), 1u);
  EXPECT_EQ(loaded.config.kernels[0].match, "softcap_ce_fwd");
  EXPECT_EQ(loaded.config.kernels[0].path, std::filesystem::absolute("configs/kernels/a.ptx").string());
  EXPECT_EQ(loaded.config.backend.keys.find("kernels"), nullptr) << "the rows are not the plugin's";
  EXPECT_TRUE(contains(print_resolved(loaded), "[[backend.kernels]]\nmatch = \"softcap_ce_fwd\""));
}

TEST(KernelRows, MistakesAreNamedWithTheirPlace) {
  EXPECT_TRUE(contains(refusal(std::string(kRow) + kRow), "'softcap_ce_fwd' is already replaced"));
  EXPECT_TRUE(contains(refusal("[[backend.kernels]]\nmatch = \"a\"\n"), "path"));
  EXPECT_TRUE(contains(refusal("[[backend.kernels]]\nmatch = \"a\"\nfile = \"b\"\n"), "file"));
  EXPECT_TRUE(contains(refusal("kernels = \"a.ptx\"\n"), "[[backend.kernels]]"));
}

// A configuration that came with data could otherwise have code loaded.
TEST(KernelRows, AStoredConfigurationNamesNoCode) {
  const LoadedConfig loaded = parse_saved_config(kRun + kRow, "artifact");
  EXPECT_TRUE(loaded.config.kernels.empty());
  ASSERT_EQ(loaded.notes.size(), 1u);
  EXPECT_TRUE(contains(loaded.notes.front(), "stored data may not name code"));
}

}  // namespace
}  // namespace mulligan::triton_rows_test
