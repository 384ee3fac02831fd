// The parameter table: first match wins, idle rows and unmatched parameters are errors.
#include "framework/config/parameter_table.h"

#include <gtest/gtest.h>

#include "tests/unit/config_testing.h"

namespace mulligan::config_parameter_table_test {
namespace {

const std::vector<std::string> kNames = {"tok_emb.weight", "qo_bank", "kv_bank", "blocks.0.attn_scale",
                                         "blocks.10.attn.q_gain"};

std::vector<ParameterRow> rows(const std::vector<std::string>& patterns) {
  std::vector<ParameterRow> result;
  for (const std::string& pattern : patterns) {
    ParameterRow row;
    row.match = pattern;
    row.origin = {Origin::Kind::file, "x.toml", static_cast<int>(result.size()) + 1};
    result.push_back(row);
  }
  return result;
}

TEST(ConfigParameterTable, TheFirstMatchingRowTakesAParameter) {
  EXPECT_EQ(resolve_parameter_table(kNames, rows({"tok_emb*", "*_bank", "blocks.*.q_gain", "*"})),
            (std::vector<size_t>{0, 1, 1, 3, 2}));
  EXPECT_EQ(resolve_parameter_table(kNames, rows({"[qk]?_bank", "*"})), (std::vector<size_t>{1, 0, 0, 1, 1}));
}

TEST(ConfigParameterTable, ARowThatMatchesNothingIsRefused) {
  EXPECT_EQ(error_of([] {
              resolve_parameter_table(kNames, rows({"tok_embedding", "*"}));
            }),
            "x.toml:1: the parameter row with match = \"tok_embedding\" "
            "matches no parameter; 'mulligan train --dry-run' lists their names.");
}

TEST(ConfigParameterTable, ARowThatComesTooLateIsRefused) {
  EXPECT_EQ(error_of([] {
              resolve_parameter_table(kNames, rows({"*", "*_bank"}));
            }),
            "x.toml:2: the parameter row with match = \"*_bank\" takes no parameter, since "
            "the row \"*\" (x.toml:1) before it takes 'qo_bank'; move it up or remove it.");
}

TEST(ConfigParameterTable, AParameterWithoutARowIsRefused) {
  EXPECT_EQ(error_of([] {
              resolve_parameter_table(kNames, rows({"tok_emb*", "*_bank"}));
            }),
            "x.toml:2: the parameter 'blocks.0.attn_scale' is matched by no row of [[parameters]]; add a row "
            "for it, or a last row with match = \"*\".");
}

}  // namespace
}  // namespace mulligan::config_parameter_table_test
