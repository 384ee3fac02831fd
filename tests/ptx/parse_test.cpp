// What the parser refuses, and single instructions against what is known of them.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>

#include "tests/ptx/execution.h"
#include "tests/ptx/opcodes.h"
#include "tests/support/sentence.h"

namespace mulligan::ptx {
namespace {

std::string module_of(const std::string& body) {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry f(.param .u64 f_param_0)\n{\n"
         ".reg .pred %p<4>;\n.reg .b16 %rs<4>;\n.reg .f32 %f<4>; .reg .f64 %fd<4>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n" +
         body + "\nret;\n}\n";
}

std::string refusal(const std::string& body) {
  return said_by([&] { parse(module_of(body), "f"); });
}

TEST(PtxParser, WhatItDoesNotKnowIsAnErrorWithLineAndText) {
  EXPECT_EQ(refusal("add.f32 %f1, %f2, %f3;"), "");
  EXPECT_EQ(refusal("add.rz.f32 %f1, %f2, %f3;"),
            "PTX of f, line 11: the instruction add.rz.f32 is not known: add.rz.f32 %f1, %f2, %f3;");
  for (const auto& [body, reason] : std::map<std::string, std::string>{
           {"ld.global.cv.u32 %r1, [%rd1];", "the modifier .cv is not known"},
           {"ld.u32 %r1, [%rd1];", "an access without a named memory"},
           {"atom.global.add.u32 %r1, [%rd1], 1;", "atom.global.add.u32 is not known"},
           {"bar.sync 1;", "a barrier other than that of the whole block"},
           {"shfl.sync.rotate.b32 %r1, %r2, 1, 31, -1;", "shfl.sync.rotate.b32 is not known"},
           {"add.f32 %f1, %f2, %rd1;", "'%rd1' is of another width"},
           {"add.f32 %f1, %f2, %f9;", "'%f9' is not known"},
           {"mov.u32 %r1, %clock;", "'%clock' is not known"},
           {"ld.param.u64 %rd1, [f_param_0+4];", "an access beyond its parameter"},
           {".local .align 4 .b8 depot[4];", "the directive .local is not known"},
           {"bra $nowhere;", "a branch to no label"},
           {"add.f32 %f1, %f2;", "another number of operands"}}) {
    EXPECT_NE(refusal(body).find(reason), std::string::npos) << body << " said: " << refusal(body);
  }
}

TEST(PtxOpcodes, OneThatIsNotListedIsNamed) {
  const auto refused = [](const std::string& body) {
    return said_by([&] { require_listed(*parse(module_of(body), "f")); });
  };
  EXPECT_EQ(refused("add.f32 %f1, %f2, %f3;"), "");
  EXPECT_NE(refused("mul.hi.u32 %r1, %r2, %r3;").find("f: tests/ptx/opcodes.inc does not list mul.hi.u32"),
            std::string::npos);
}

// Runs `body` with 32 threads: %r1 of lane i is in[i], and what it leaves in %r2 comes back.
std::vector<std::uint32_t> compute(const std::string& body, const std::vector<std::uint32_t>& in) {
  const auto program = parse(module_of("mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd1, %r0, 4;\n"
                                       "ld.param.u64 %rd2, [f_param_0];\nadd.s64 %rd3, %rd2, %rd1;\n"
                                       "ld.global.u32 %r1, [%rd3];\n" +
                                       body + "\nst.global.u32 [%rd3], %r2;"),
                             "f");
  std::vector<std::uint32_t> memory = in;
  Clock clock;
  std::vector<Touch> touches;
  clock.begin_launch();
  LaunchMemory launch(*program, {{"x", reinterpret_cast<char*>(memory.data()), 128, nullptr, true, true}}, 0,
                      touches, clock);
  std::vector<char> parameters(8);
  const std::uint32_t* address = memory.data();
  std::memcpy(parameters.data(), &address, sizeof address);
  Execution(*program, {{1, 1, 1}, {32, 1, 1}}, parameters, launch, clock, Order::forward).run();
  return memory;
}

std::uint32_t one(const std::string& body, std::uint32_t in) {
  return compute(body, std::vector<std::uint32_t>(32, in))[0];
}
std::uint32_t bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
// From %f1 to %f2.
std::uint32_t one_float(const std::string& body, std::uint32_t in) {
  return one("mov.b32 %f1, %r1;\n" + body + "\nmov.b32 %r2, %f2;", in);
}

TEST(PtxInstructions, KnownResults) {
  // Two roundings or one.
  const float a = 1.0f + 0x1p-12f;
  EXPECT_EQ(one_float("mul.f32 %f2, %f1, %f1;\nadd.f32 %f2, %f2, 0fBF800000;", bits(a)), bits(0x1p-11f));
  EXPECT_EQ(one_float("fma.rn.f32 %f2, %f1, %f1, 0fBF800000;", bits(a)), bits(0x1p-11f + 0x1p-24f));
  EXPECT_EQ(one("shr.s32 %r2, %r1, 40;", 0x80000000), 0xFFFFFFFFu);
  EXPECT_EQ(one("shl.b32 %r2, %r1, 32;", 1), 0u);
  EXPECT_EQ(one("mov.b32 %f1, %r1;\ncvt.rzi.s32.f32 %r2, %f1;", bits(-3e9f)), 0x80000000u);
  EXPECT_EQ(one("mov.b32 %f1, %r1;\ncvt.rzi.u64.f32 %rd1, %f1;\ncvt.u32.u64 %r2, %rd1;", bits(-1.5f)), 0u);
  EXPECT_EQ(one_float("max.f32 %f2, %f1, 0f3F800000;", 0x7FC00001), bits(1.0f));
  EXPECT_EQ(one_float("sub.f32 %f2, %f1, %f1;", 0x7F800000), 0x7FFFFFFFu);
  for (const auto& [in, out] : {std::pair(-1.0f, 0.0f), {0.25f, 0.25f}, {7.0f, 1.0f}, {NAN, 0.0f}}) {
    EXPECT_EQ(one_float("cvt.sat.f32.f32 %f2, %f1;", bits(in)), bits(out));
    EXPECT_EQ(
        one_float("cvt.f64.f32 %fd1, %f1;\ncvt.sat.f64.f64 %fd2, %fd1;\ncvt.rn.f32.f64 %f2, %fd2;", bits(in)),
        bits(out));
  }
  EXPECT_EQ(one_float("cvt.f64.f32 %fd1, %f1;\nabs.f64 %fd2, %fd1;\ncvt.rn.f32.f64 %f2, %fd2;", bits(-2.5f)),
            bits(2.5f));
  EXPECT_EQ(one_float("min.f32 %f2, %f1, 0f3F800000;", 0x7FC00001), bits(1.0f));
  EXPECT_EQ(one("prmt.b32 %r2, %r1, 0, 0x4012;", 0x44332211), 0x00112233u);
  EXPECT_EQ(one("bfi.b32 %r2, %r1, -1, 8, 4;", 0x5), 0xFFFFF5FFu);
  EXPECT_EQ(one("mov.b32 %f1, %r1;\ncvt.rn.bf16.f32 %rs1, %f1;\ncvt.u32.u16 %r2, %rs1;", 0x3F808000),
            0x3F80u);
  EXPECT_EQ(one("mov.b32 %f1, %r1;\ncvt.rn.bf16.f32 %rs1, %f1;\ncvt.u32.u16 %r2, %rs1;", 0x3F818000),
            0x3F82u);
  EXPECT_EQ(one_float("ex2.approx.ftz.f32 %f2, %f1;", bits(-127.0f)), 0u);
  EXPECT_EQ(one_float("ex2.approx.f32 %f2, %f1;", bits(-127.0f)), bits(0x1p-127f));
}

// Each comparison of a number with 1, and of NaN, for which the unordered ones hold.
TEST(PtxInstructions, Compares) {
  const auto holds = [](const std::string& comparison, float value) {
    return one("mov.b32 %f1, %r1;\ncvt.f64.f32 %fd1, %f1;\nsetp." + comparison +
                   ".f64 %p1, %fd1, 0d3FF0000000000000;\nselp.b32 %r2, 1, 0, %p1;",
               bits(value));
  };
  struct Row {
    const char* comparison;
    std::uint32_t less, equal, more, nan;
  };
  for (const Row& row :
       {Row{"gt", 0, 0, 1, 0}, {"leu", 1, 1, 0, 1}, {"num", 1, 1, 1, 0}, {"nan", 0, 0, 0, 1}}) {
    EXPECT_EQ(holds(row.comparison, 0.5f), row.less) << row.comparison;
    EXPECT_EQ(holds(row.comparison, 1.0f), row.equal) << row.comparison;
    EXPECT_EQ(holds(row.comparison, 1.5f), row.more) << row.comparison;
    EXPECT_EQ(holds(row.comparison, NAN), row.nan) << row.comparison;
  }
  const std::string wide =
      "cvt.u64.u32 %rd1, %r1;\nsetp.gt.u64 %p1, %rd1, 5;\nselp.u64 %rd2, %rd1, 9, %p1;\n"
      "cvt.u32.u64 %r2, %rd2;";
  EXPECT_EQ(one(wide, 5), 9u);
  EXPECT_EQ(one(wide, 0x80000000), 0x80000000u);
  const std::string unsigned_word = "setp.ge.u32 %p1, %r1, 7;\nselp.b32 %r2, 1, 0, %p1;";
  EXPECT_EQ(one(unsigned_word, 6), 0u);
  EXPECT_EQ(one(unsigned_word, 7), 1u);
  EXPECT_EQ(one(unsigned_word, 0x80000000), 1u);
}

// Against the CPU's own rounding.
TEST(PtxInstructions, RoundsDown) {
  std::vector<std::uint32_t> in(32), expected(32);
  for (std::uint32_t round = 0; round < 64; ++round) {
    for (std::uint32_t i = 0; i < 32; ++i) {
      in[i] = (round * 32 + i) * 2654435761u;
      if ((in[i] & 0x7F800000) == 0x7F800000) in[i] ^= 0x20000000;
      const volatile float a = std::bit_cast<float>(in[i]), b = 1.0f + 0x1p-12f, c = -1.5f;
      std::fesetround(FE_DOWNWARD);
      const volatile float sum = std::fma(a, b, c);
      std::fesetround(FE_TONEAREST);
      expected[i] = bits(sum);
    }
    EXPECT_EQ(
        compute("mov.b32 %f1, %r1;\nfma.rm.f32 %f2, %f1, 0f3F800800, 0fBFC00000;\nmov.b32 %r2, %f2;", in),
        expected);
  }
}

}  // namespace
}  // namespace mulligan::ptx
