// The C++ wrapper of the SDK on its own: exceptions and schema rows.
#include <gtest/gtest.h>

#include <mulligan/optimizer.hpp>

#include <new>

namespace {

namespace sdk = mulligan::sdk;

TEST(SdkGuarded, EveryWayOfFailingBecomesASentence) {
  EXPECT_EQ(sdk::guarded([] {}), nullptr);
  EXPECT_STREQ(sdk::guarded([] { throw sdk::Error("the first reason"); }), "the first reason");
  EXPECT_NE(std::string(sdk::guarded([] { throw std::bad_alloc(); })).find("ran out of memory"),
            std::string::npos);
  EXPECT_NE(std::string(sdk::guarded([] { throw 7; })).find("not a std::exception"), std::string::npos);
  EXPECT_EQ(sdk::guarded([] {}), nullptr) << "a failure leaves no error";
  EXPECT_THROW(sdk::shape(MLG_F32, {1, 1, 1, 1, 1}), sdk::Error);
}

struct Config {
  double tiny = 1e-300, one = 1;
  int count = -3;
  std::uint8_t byte = 200;
  std::string quoted = "a \"b\" \\";
  std::vector<double> none;
};

TEST(SdkSchema, RowsCarryDefaultsRangesAndTypes) {
  const sdk::Schema<Config> schema{sdk::key("tiny", &Config::tiny, "h"),
                                   sdk::key("one", &Config::one, "h").range(0, 2),
                                   sdk::key("count", &Config::count, "h").at_least(-5),
                                   sdk::key("byte", &Config::byte, "h"),
                                   sdk::key("quoted", &Config::quoted, "h").choices("x|y"),
                                   sdk::key("none", &Config::none, "h"),
                                   sdk::key("must", &Config::one, "the help").required()};
  const std::vector<mlg_key>& rows = schema.rows();
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_STREQ(rows[0].default_value, "1e-300");
  EXPECT_STREQ(rows[1].default_value, "1.0") << "a real number in TOML needs a point";
  EXPECT_EQ(rows[1].minimum, 0);
  EXPECT_EQ(rows[1].maximum, 2);
  EXPECT_EQ(rows[2].type, MLG_KEY_INT);
  EXPECT_EQ(rows[2].minimum, -5);
  EXPECT_STREQ(rows[3].default_value, "200");
  EXPECT_EQ(rows[3].minimum, 0);
  EXPECT_EQ(rows[3].maximum, 255) << "what the member can hold";
  EXPECT_STREQ(rows[4].default_value, "\"a \\\"b\\\" \\\\\"");
  EXPECT_STREQ(rows[4].choices, "x|y");
  EXPECT_STREQ(rows[5].default_value, "[]");
  EXPECT_EQ(rows[6].default_value, nullptr);
  EXPECT_STREQ(rows[6].help, "the help");
}

}  // namespace
