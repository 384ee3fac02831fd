// Names and fields of files can neither steer a terminal nor pretend to be another line.
#include "framework/core/printable.h"

#include <gtest/gtest.h>

namespace mulligan::printable_test {
namespace {

TEST(Printable, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(printable("a name, Ünïcödé ✓ and\ta tab"), "a name, Ünïcödé ✓ and\ta tab");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m\a\x7f\r"), "\\x1b[31mred\\x1b[0m\\x07\\x7f\\x0d");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, SoAreThoseOfEightBits) {
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xc2\xa0"), "\xc2\xa0");  // a space that does not break
}

TEST(Printable, ALineBreakStaysOnlyInTextsOfSeveralLines) {
  EXPECT_EQ(printable("a\nmulligan: all is well"), "a\\nmulligan: all is well");
  EXPECT_EQ(printable("a\nb\x1b", LineBreaks::kept), "a\nb\\x1b");
}

}  // namespace
}  // namespace mulligan::printable_test
