// The C++ wrapper of the SDK on its own: exceptions, schema rows, the recorder.
#include <gtest/gtest.h>

#include <mulligan/optimizer.hpp>

#include <map>
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

// A host that writes down what is recorded and refuses the kernel "bad".
struct FakeHost {
  std::map<mlg_value, mlg_tensor> values;
  std::vector<std::string> log;
  mlg_recorder table{this, describe, state, scratch, view, launch, survives_warmup};

  static FakeHost& of(void* self) { return *static_cast<FakeHost*>(self); }
  mlg_error add(const mlg_tensor& shape, mlg_value* out) {
    *out = static_cast<mlg_value>(values.size() + 1);
    values[*out] = shape;
    return nullptr;
  }
  static mlg_error describe(void* self, mlg_value value, mlg_tensor* out) {
    if (!of(self).values.contains(value)) return "no such value";
    *out = of(self).values[value];
    return nullptr;
  }
  static mlg_error state(void* self, const char* name, const mlg_tensor* shape, mlg_value* out) {
    of(self).log.push_back(std::string("state ") + name);
    return of(self).add(*shape, out);
  }
  static mlg_error scratch(void* self, const mlg_tensor* shape, mlg_value* out) {
    return of(self).add(*shape, out);
  }
  static mlg_error view(void* self, mlg_value, int64_t offset, const mlg_tensor* shape, mlg_value* out) {
    of(self).log.push_back("view at " + std::to_string(offset));
    return of(self).add(*shape, out);
  }
  static mlg_error launch(void* self, const char* kernel, const mlg_value* arguments, uint32_t argument_count,
                          const mlg_attribute* attributes, uint32_t attribute_count) {
    if (std::string(kernel) == "bad") return "there is no kernel 'bad'";
    std::string line = kernel;
    for (uint32_t i = 0; i < argument_count; ++i) line += " " + std::to_string(arguments[i]);
    for (uint32_t i = 0; i < attribute_count; ++i) {
      line += std::string(" ") + attributes[i].name + "=" + std::to_string(attributes[i].value);
    }
    of(self).log.push_back(line);
    return nullptr;
  }
  static mlg_error survives_warmup(void* self, mlg_value state) {
    of(self).log.push_back("survives " + std::to_string(state));
    return nullptr;
  }
};

TEST(SdkRecorder, DeclaresWhatSurvivesWarmUp) {
  FakeHost host;
  sdk::Recorder recorder(&host.table);
  recorder.state("sum", sdk::shape(MLG_F32, {3}));
  recorder.state("momentum", sdk::shape(MLG_F32, {3}), {.survives_warmup = true});
  EXPECT_EQ(host.log, (std::vector<std::string>{"state sum", "state momentum", "survives 2"}));
}

TEST(SdkRecorder, PassesEverythingThroughAndThrowsTheHostsSentence) {
  FakeHost host;
  sdk::Recorder recorder(&host.table);
  const sdk::Value m = recorder.state("w.m", sdk::shape(MLG_BF16, {3, 4}));
  EXPECT_EQ(recorder.describe(m).rank, 2);
  EXPECT_EQ(recorder.describe(m).shape[2], 1) << "entries beyond the rank are 1";
  EXPECT_EQ(sdk::element_count(recorder.describe(m)), 12);
  EXPECT_EQ(recorder.describe(recorder.scratch(sdk::with_dtype(recorder.describe(m), MLG_F32))).dtype,
            MLG_F32);
  recorder.view(m, 8, sdk::shape(MLG_BF16, {4}));
  recorder.launch("k", {m, sdk::absent}, {{"count", 3}, {"flag", true}, {"rate", 0.5f}});
  EXPECT_EQ(host.log, (std::vector<std::string>{"state w.m", "view at 8",
                                                "k 1 0 count=3.000000 flag=1.000000 rate=0.500000"}));
  EXPECT_THROW(recorder.describe(99), sdk::Error);
  EXPECT_THROW(sdk::shape(MLG_F32, {1, 1, 1, 1, 1}), sdk::Error);
  try {
    recorder.launch("bad", {m});
    FAIL() << "the refusal was lost";
  } catch (const sdk::Error& error) {
    EXPECT_STREQ(error.what(), "there is no kernel 'bad'");
  }
}

}  // namespace
