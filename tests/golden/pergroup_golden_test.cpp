// Streams of codes by role against the public reference (fixture folder pergroup/): orders of rows, and the
// bytes that go to the compressor.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "framework/artifact/role_streams.h"
#include "tests/golden/golden_fixture.h"

namespace mulligan::pergroup_golden_test {
namespace {

struct Matrix {
  std::string name;
  std::vector<std::int8_t> codes;
  std::int64_t columns = 0;
  std::int64_t layer = 0;
};

// The fixture's matrices of each role, layers ascending.
std::map<CodeRole, std::vector<Matrix>> matrices_by_role(const GoldenFixture& fixture) {
  std::map<CodeRole, std::vector<Matrix>> by_role;
  for (const std::string& stored : fixture.names()) {
    if (!stored.starts_with("q.") || !stored.ends_with(".q")) continue;
    Matrix matrix;
    matrix.name = stored.substr(2, stored.size() - 4);
    matrix.codes = fixture.codes(stored);
    matrix.columns = fixture.shape(stored).at(1);
    if (matrix.name.starts_with("blocks.")) matrix.layer = std::stoll(matrix.name.substr(7));
    by_role[code_role(matrix.name)].push_back(std::move(matrix));
  }
  for (auto& [role, matrices] : by_role) std::ranges::sort(matrices, {}, &Matrix::layer);
  return by_role;
}

TEST(PergroupGolden, OrdersOfEveryMatrix) {
  const GoldenFixture fixture("pergroup");
  int compared = 0;
  for (const auto& [role, matrices] : matrices_by_role(fixture)) {
    for (const Matrix& matrix : matrices) {
      SCOPED_TRACE(matrix.name);
      ASSERT_TRUE(fixture.has("order." + matrix.name + ".q"));
      const std::vector<std::uint16_t> ours = neighbour_order(matrix.codes, matrix.columns);
      EXPECT_TRUE(std::ranges::equal(ours, fixture.ints("order." + matrix.name + ".q")));
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(PergroupGolden, StreamsAndTheirOrders) {
  const GoldenFixture fixture("pergroup");
  const auto by_role = matrices_by_role(fixture);
  const nlohmann::json& groups = fixture.manifest().at("groups");
  const nlohmann::json& sorted = fixture.manifest().at("sorted_groups");
  std::vector<std::int32_t> orders;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto group = groups.at(i).get<std::string>();
    SCOPED_TRACE(group);
    // Streams come in the order of the enumeration. Names there begin with a dot or with nothing.
    const auto role = static_cast<CodeRole>(i);
    ASSERT_TRUE(by_role.contains(role));
    const bool ordered = std::ranges::find(sorted, groups.at(i)) != sorted.end();
    EXPECT_EQ(orders_rows(CodeStreams::role_ordered, role), ordered);
    EXPECT_TRUE(orders_rows(CodeStreams::role_all_ordered, role));
    EXPECT_FALSE(orders_rows(CodeStreams::role, role));
    std::string stream;
    for (const Matrix& matrix : by_role.at(role)) {
      EXPECT_TRUE((matrix.name + ".q").ends_with(group.substr(1))) << matrix.name;
      std::vector<std::uint16_t> order;
      if (ordered) order = neighbour_order(matrix.codes, matrix.columns);
      orders.insert(orders.end(), order.begin(), order.end());
      const std::string part = transposed_codes(matrix.codes, matrix.columns, order);
      EXPECT_EQ(untransposed_codes(part, matrix.columns, order), matrix.codes);
      stream += part;
    }
    const std::vector<std::uint8_t> theirs = fixture.bytes("stream" + std::to_string(i) + "." + group);
    EXPECT_TRUE(
        std::ranges::equal(stream, theirs, {}, [](char byte) { return static_cast<std::uint8_t>(byte); }));
  }
  EXPECT_EQ(orders, fixture.ints("perms"));
}

}  // namespace
}  // namespace mulligan::pergroup_golden_test
