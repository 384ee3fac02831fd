// The catalogue docs/kernels.md, the backend's kernels and the tests must speak of the same things.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test::catalogue_test {
namespace {

// Signatures by kernel as the catalogue's tables give them, without shapes, dtypes and remarks. The page has tables
// of other things, too, which begin with a kernel's name as well.
std::map<std::string, std::string> read_catalogue() {
  std::map<std::string, std::string> kernels;
  std::ifstream file(MULLIGAN_SOURCE_DIRECTORY "/docs/kernels.md");
  const std::regex row(R"(^\| ([a-z0-9_]+) \| ([^|]*) \|.*)");
  const std::regex remark(R"(\[[^\]]*\]|\([^)]*\))");
  const std::regex argument(R"(((?:in|out|inout)\??) ([a-z0-9_]+)[^,;]*)");
  bool signatures = false;
  for (std::string line; std::getline(file, line);) {
    const bool head = line == "| kernel | signature | computes |";
    signatures = head || (signatures && line.starts_with('|'));
    std::smatch match;
    if (!signatures || head || !std::regex_match(line, match, row)) continue;
    std::string signature = match[2];
    // Brackets hold commas and parentheses brackets: shapes go first, then remarks.
    signature = std::regex_replace(std::regex_replace(signature, remark, ""), remark, "");
    const std::size_t semicolon = signature.find(';');
    const std::string attributes = semicolon == std::string::npos ? "" : signature.substr(semicolon);
    kernels[match[1]] = std::regex_replace(signature.substr(0, semicolon), argument, "$1 $2") + attributes;
  }
  return kernels;
}

TEST(Catalogue, BackendBringsEveryKernelWithThatSignature) {
  const BackendFixture& backend = backend_with_threads(1);
  const std::map<std::string, std::string> catalogue = read_catalogue();
  ASSERT_GT(catalogue.size(), 30u);
  const std::vector<std::string> names = backend.kernel_names();
  for (const auto& [kernel, signature] : catalogue) {
    if (std::find(names.begin(), names.end(), kernel) == names.end()) {
      ADD_FAILURE() << "the cpu backend has no kernel " << kernel;
      continue;
    }
    EXPECT_TRUE(backend.signature(kernel) == parse_signature(signature))
        << kernel << " is documented as " << signature;
  }
}

TEST(Catalogue, EveryKernelOfTheBackendIsDocumented) {
  const std::map<std::string, std::string> catalogue = read_catalogue();
  for (const std::string& kernel : backend_with_threads(1).kernel_names()) {
    EXPECT_EQ(catalogue.count(kernel), 1u) << kernel << " is missing in docs/kernels.md";
  }
}

// The list of kernels without a test is printed, and must be empty.
TEST(Catalogue, EveryKernelHasATest) {
  std::string untested;
  for (const std::string& kernel : backend_with_threads(1).kernel_names()) {
    if (!CoversKernel::covered().count(kernel)) untested += " " + kernel;
  }
  EXPECT_EQ(untested, "") << "kernels of the cpu backend without a test:" << untested;
}

}  // namespace
}  // namespace mulligan::kernel_test::catalogue_test
