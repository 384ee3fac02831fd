// What of the source an evaluation needs and how its bytes are counted; its settings survive their text.
#include "framework/artifact/evaluation_source.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "framework/artifact/code_size.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/evaluation_settings.h"
#include "framework/artifact/reachable_source.h"
#include "framework/artifact/text_packer.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::artifact_evaluation_source_test {
namespace {

namespace fs = std::filesystem;

const fs::path tree = MULLIGAN_SOURCE_DIR;

TEST(EvaluationSource, CommentsAndSpacesGoLiteralsStay) {
  const std::pair<const char*, const char*> cases[] = {
      {"int  a;  // one\n\n\n  /* two\n */ int b;\n", "int a;int b;\n"},
      {"f(\"// no  comment\", 'x', '\"', \"\\\"  //\");", "f(\"// no  comment\",'x','\"',\"\\\"  //\");\n"},
      {"auto s = R\"x(a  //\n\n  b)\" )x\";  // c", "auto s=R\"x(a  //\n\n  b)\" )x\";\n"},
      {"int n = 1'000'000;  // '\nchar c = '/';", "int n=1'000'000;char c='/';\n"},
      {"int x = 0xA'Bu; /* unfinished", "int x=0xA'Bu;\n"},
      {"#define A(x)   \\\n  (x)  // y\nint  a = - -b;", "#define A(x) (x)\nint a=- -b;\n"},
      {"a = b + +c > > d; return \"x\";", "a=b+ +c> >d;return \"x\";\n"},
      {"", ""},
      {"// nothing", ""}};
  for (const auto& [source, text] : cases) EXPECT_EQ(without_comments(source), text);
}

std::string reached(const std::string& source, const std::string& other = "") {
  SourceFiles files{{"a.cpp", source}, {"main.cpp", "int main() { return used(); }"}};
  if (!other.empty()) files.emplace_back("launch/evaluator/replaced.cpp", other);
  const SourceFiles kept = reachable_source(files);
  return kept[0].first == "a.cpp" ? kept[0].second : "";
}

TEST(EvaluationSource, AReplacementIsOfOneQualifiedName) {
  EXPECT_EQ(reached("int used() { return helper(); } int helper() { return 1; }", "int used() { return 2; }"),
            "");
  EXPECT_THROW(reached("int used() { return 1; }", "int others() { return 2; }"), std::runtime_error);
  EXPECT_EQ(reached("int f() { return 1; } namespace n { int f() { return 2; } int used() { return f(); } }",
                    "int f() { return 0; }"),
            "namespace n{int f(){return 2;}int used(){return f();}}\n");
  EXPECT_EQ(
      reached(
          "struct A { A(); ~A(); A(const A&) = delete; }; A::A() { f(); } A::~A() { g(); } A used() { return A(); }",
          "A::A() {}"),
      "struct A{A();~A();};A::~A(){g();}A used(){return A();}\n");
}

TEST(EvaluationSource, DefinitionsThatNothingNamesGo) {
  EXPECT_EQ(reached("int used() { return 1; } int unused() { return used(); }"), "int used(){return 1;}\n");
  EXPECT_EQ(reached("int unused() { return 1; }"), "");
  EXPECT_EQ(
      reached(
          "struct A { int used() { return x; } int other(); virtual int kept(); A(); int x = 1; };\n"
          "int A::other() { return 2; } int A::kept() { return 3; } A::A() {} int used() { return A().used(); }"),
      "struct A{int used(){return x;}virtual int kept();A();int x=1;};int A::kept(){return 3;}A::A(){}int "
      "used(){return A().used();}\n");
  EXPECT_EQ(
      reached(
          "const Register registered(kernel<B>()); struct B {}; struct C {}; enum D { one, two }; constexpr int a = b<<1; int "
          "used() { return one; }"),
      "const Register registered(kernel<B>());struct B{};enum D{one,two};int used(){return one;}\n");
  EXPECT_EQ(
      reached(
          "namespace { struct A { static void plan(); static void call(); }; void A::plan() {} void A::call() {}\n"
          "template <typename T> void f() { T::plan(); } void call() {} } int used() { f<A>(); }"),
      "namespace{struct A{static void plan();};void A::plan(){}template<typename T>void f(){T::plan();}}int used(){f<A>();}\n");
  EXPECT_EQ(
      reached(
          "#define CALL(x) helper(x)\n#define OTHER 1\nint helper(int); int used() { return CALL(1); } static_assert(true);"),
      "#define CALL(x) helper(x)\nint helper(int);int used(){return CALL(1);}\n");
  EXPECT_EQ(
      reached(
          "template <typename T> requires requires { T::x; } constexpr int size<B<T>> = T::x; bool B::operator<(B) const { return "
          "true; } X f = sdk::key(\"a\", &A::a, \"of \" \"it\"); int used() { throw data_error(\"no; make {}\" \"it\", 1); }"),
      "X f=sdk::key(\"a\",&A::a,\"\");int used(){throw data_error(\"no\",1);}\n");
}

std::string renamed(const std::string& source) {
  return short_names({{"a.cpp", source}, {"b.cu", "__global__ void device_name(int device_argument);"}})[0]
      .second;
}

TEST(EvaluationSource, NamesOfTheTreeBecomeShort) {
  EXPECT_EQ(
      renamed("class Whole_Type { public: int size() { return member_name_; } private: int member_name_; "
              "virtual void f() override; };"),
      "struct Aa{int size(){return aA_;}int aA_;virtual void f();};\n");
  EXPECT_EQ(renamed("struct Outer { int own_value; }; int function(Outer outer) { return outer.own_value; }"),
            "struct Aa{int aA;};int aB(Aa aC){return aC.aA;}\n");
  for (const char* kept :
       {"int device_name(int device_argument);\n", "#define CALL(x) own_name(x)\nint own_name(int);\n",
        "int known_name=TEXT(known_name);\n", "int lower_bound=std::lower_bound(f);\n",
        "struct evp_md_ctx_st;\n", "int uint_t=names.count(length);\n", "char*text=\"Outer own_value\";\n"})
    EXPECT_EQ(renamed(kept), kept);
  for (const char* kept : {"void f(){asm volatile(\"\");}volatile int x;\n", "const decltype(x)y=x;\n",
                           "struct A{bool has_value()const;};\n", "void f(){do memcpy(a,b,c);while(x);}\n",
                           "template<template<typename>class Box>struct A{};\n",
                           "extern \"C\" int dgemm_(int*size);\n", "int x=sizeof(struct sockaddr);\n"})
    EXPECT_EQ(renamed(kept), kept);
  EXPECT_EQ(renamed("template <class T> struct A { T f = T::count; }; enum class Kind { first };"),
            "template<class T>struct A{T f=T::count;};enum class Kind{first};\n");
}

TEST(EvaluationSource, HeadersOfLibrariesMoveIntoOneAndOthersStayOnce) {
  const SourceFiles files =
      join_headers({{"a.cpp",
                     "#include <map>\n#include \"a.h\"\n#include \"b.h\"\n#include <fmt/format.h>\n#include "
                     "\"c.inc\"\nint b=R\"(\n#include <list>\n)\";\n"},
                    {"a.h", "#include \"b.h\"\n"},
                    {"b.h", "#include <map>\n"}});
  ASSERT_EQ(files.size(), 4U);
  EXPECT_EQ(files[0].second, "#include \"a.h\"\n#include \"c.inc\"\nint b=R\"(\n#include <list>\n)\";\n");
  EXPECT_EQ(files[1].second, "#include \"b.h\"\n\n");
  EXPECT_EQ(files[3].second, "#include <fmt/format.h>\n#include <map>\n");
}

TEST(EvaluationSource, EveryIncludeOfItIsInItAndNothingElse) {
  const EvaluationSource source = evaluation_source(
      tree, {"cpu", "record", "element:smear_gate", "doc_lora", "adamw", "global_sgd", "sgd"});
  const std::set<fs::path> files(source.begin(), source.end());
  for (const char* wanted :
       {"launch/evaluator/main.cpp", "launch/evaluator/CMakeLists.txt", "framework/artifact/rans.h",
        "optimizers/adamw/adamw_step.cu", "kernels/smear_gate/cpu.cpp"})
    EXPECT_TRUE(files.contains(wanted)) << wanted;
  const std::regex include(
      "#include [\"<]((framework|kernels|tools|lab|launch|plugins|mulligan|optimizers|ttt)/[^\">]+)[\">]");
  for (const fs::path& file : source) {
    const std::string path = file.string();
    for (const char* other : {"_test.cpp", "framework/train/", "tools/", "lab/", "optimizers/muon",
                              "plugins/backends/cuda", "elements/sparse_gate"})
      EXPECT_FALSE(contains(path, other)) << file;
    const std::string text = read_file(tree / file);
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it) {
      fs::path wanted = (*it)[1].str();
      if (wanted.begin()->string() == "mulligan") wanted = fs::path("include") / wanted;
      EXPECT_TRUE(files.contains(wanted) || files.contains("launch/evaluator" / wanted) ||
                  files.contains("launch/evaluator/include" / wanted))
          << file << " includes " << wanted;
    }
  }
}

TEST(EvaluationSource, APluginWithoutAnEntryIsCountedWhole) {
  const EvaluationSource source = evaluation_source(tree, {"cpu", "record", "muon"});
  EXPECT_NE(std::ranges::find(source, fs::path("optimizers/muon/muon.cpp")), source.end());
}

TEST(EvaluationSource, AnArchiveIsNamesAndContents) {
  const EvaluationSource source{"framework/artifact/rans.h", "launch/evaluator/CMakeLists.txt"};
  const std::string archive = evaluation_archive(tree, source);
  EXPECT_TRUE(archive.starts_with("framework/artifact/rans.h\n"));
  const auto files = archived_files(archive);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].second.find("<cstdint>"), std::string::npos);
  EXPECT_NE(files[2].second.find("#include <cstdint>\n"), std::string::npos) << files[2].first;
  EXPECT_LT(files[0].second.size(), read_file(tree / source[0]).size());
  EXPECT_TRUE(files[1].second.starts_with("cmake_minimum_required")) << files[1].second;
  for (const std::string& damaged :
       {archive.substr(0, archive.size() - 1), archive + "x", archive + '\0', std::string("a 9")})
    EXPECT_THROW(archived_files(damaged), std::runtime_error);
}

std::string reason_of(const std::string& packed) {
  return said_by([&] { unpack_text(packed, 1000); });
}

TEST(EvaluationSource, TheTextCoderGivesItsTextBack) {
  const std::string source = read_file(tree / "framework/artifact/text_coder.h");
  std::string all_bytes;
  for (int i = 0; i < 2048; ++i) all_bytes += static_cast<char>(i * i / 7);
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(5000, 'x'), all_bytes, source}) {
    const std::string packed = pack_text(text);
    EXPECT_TRUE(unpack_text(packed, text.size()) == text);
  }
  EXPECT_LT(pack_text(source).size(), compress(Compression::brotli, source).size());
}

TEST(EvaluationSource, ADamagedPackageIsRefused) {
  const std::string packed = pack_text("int main() { return 0; }\n");
  EXPECT_EQ(reason_of(packed), "");
  EXPECT_EQ(reason_of(packed.substr(0, packed.size() - 1)), "is truncated");
  EXPECT_EQ(reason_of("ab"), "is truncated");
  EXPECT_EQ(reason_of(packed + "x"), "has bytes too many");
  EXPECT_EQ(reason_of(std::string(8, '\xff')), "declares more bytes than a source may have");
}

TEST(EvaluationSource, UnknownPluginsAndTreesAreNamed) {
  const auto sentence = [](const fs::path& root, const std::string& plugin) {
    return refusal_of([&] { evaluation_source(root, {plugin}); });
  };
  EXPECT_TRUE(contains(sentence(tree, "not_there"), "'not_there' is not a plugin of the source tree"));
  EXPECT_TRUE(contains(sentence(tree / "docs", "cpu"), "is not mulligan's source tree"));
}

EvaluationSettings settings_of_all_kinds() {
  EvaluationSettings settings;
  settings.model.layers = 7;
  settings.model.softcap = 0.1;
  settings.model.loop.extra_passes = 2;
  settings.model.lanes.final_lane = FinalLane::attention;
  settings.elements = {{"smear_gate.window", ConfigValue(std::int64_t{12})},
                       {"masking.share", ConfigValue(0.25)}};
  settings.eval.tokens = 1234567890123;
  settings.seed = -5;
  settings.backend = {
      "backend", "cpu", {{"threads", ConfigValue(std::int64_t{0})}, {"cache", ConfigValue("")}}};
  settings.ttt.chunk_limits = {256, 2000};
  settings.ttt.chunk_sizes = {8, 24};
  settings.lr = 1e-4;
  settings.masters = {{3, true}, {1, false}};
  settings.adapters = {"ttt.adapters",
                       "doc_lora",
                       {{"taps", ConfigValue("q v")},
                        {"warm", ConfigValue(true)},
                        {"list", ConfigValue(ConfigValue::Reals{0.1, -2})}}};
  return settings;
}

TEST(EvaluationSettings, AreReadAsTheyWereWritten) {
  const std::string text = write_evaluation_settings(settings_of_all_kinds());
  const EvaluationSettings read = read_evaluation_settings(text);
  EXPECT_EQ(write_evaluation_settings(read), text);
  EXPECT_EQ(read.model.softcap, 0.1);
  EXPECT_EQ(read.model.lanes.final_lane, FinalLane::attention);
  EXPECT_EQ(read.model.elements.at("smear_gate.window").as<int64_t>(), 12);
  EXPECT_EQ(read.ttt.chunk_sizes, (std::vector<double>{8, 24}));
  EXPECT_EQ(read.adapters, settings_of_all_kinds().adapters);
  EXPECT_TRUE(read.base.name.empty());
}

TEST(EvaluationSettings, DamagedTextIsAnErrorOfOneSentence) {
  const std::string text = write_evaluation_settings(settings_of_all_kinds());
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_THROW(read_evaluation_settings(text.substr(0, length)), Error) << length;
  EXPECT_THROW(read_evaluation_settings(text + "1\n"), Error);
  const auto fields = nlohmann::json::parse(text);
  for (const char* wrong : {"null", "{}", "[null]", "0.5", "1e300"}) {
    const auto value = nlohmann::json::parse(wrong);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      // A real number may be a plugin's; 30 fields are the model's.
      if (value.is_number() && (i >= 30 || fields[i].is_number_float())) continue;
      nlohmann::json damaged = fields;
      damaged[i] = value;
      EXPECT_THROW(read_evaluation_settings(damaged.dump()), Error) << wrong << " at " << i;
    }
  }
  EXPECT_THROW(read_evaluation_settings(std::string(100000, '[')), Error);
  std::uint64_t state = 1;
  for (int round = 0; round < 1000; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      damaged[(state >> 33) % damaged.size()] = static_cast<char>("\n0-9.x"[(state >> 20) % 6]);
    }
    try {
      read_evaluation_settings(damaged);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("make it again"), std::string::npos);
    }
  }
}

TEST(CodeSize, TheTarArchiveIsReadByTar) {
  const test_support::ScratchFolder scratch;
  const fs::path& folder = scratch.path();
  const std::string deep = std::string(30, 'd') + "/" + std::string(53, 'e');  // 100 bytes with the rest
  write_file_atomically(folder / "framework" / "a.txt", std::string(600, 'a'));
  write_file_atomically(folder / "framework" / deep / "b.txt", "b");
  const std::string archive = source_archive(folder);
  EXPECT_EQ(archive.size() % 512, 0U);
  write_file_atomically(folder / "x.tar", archive);
  fs::create_directories(folder / "out");
  ASSERT_EQ(std::system(fmt::format("tar -C {0}/out -xf {0}/x.tar", folder.string()).c_str()), 0);
  EXPECT_EQ(read_file(folder / "out" / "framework" / "a.txt"), std::string(600, 'a'));
  EXPECT_EQ(read_file(folder / "out" / "framework" / deep / "b.txt"), "b");
  EXPECT_NE(sentence_of([&] { source_archive(folder / "out" / "framework"); }).find("source tree"),
            std::string::npos);
}

// What a program was built from cannot be changed without another digest, device headers and lists included.
TEST(CodeSize, TheDigestOfTheSourceIsOfEveryFileOfCode) {
  const test_support::ScratchFolder scratch;
  const fs::path folder = scratch / "plugins";
  for (const char* name : {"a.h", "a.hpp", "a.inc", "a.c", "a.cpp", "a.cu", "a.cuh"}) {
    const std::string before = source_digest(scratch.path());
    write_file_atomically(folder / name, "int a;");
    EXPECT_NE(source_digest(scratch.path()), before) << name;
  }
  const std::string before = source_digest(scratch.path());
  write_file_atomically(folder / "a.md", "# A");
  EXPECT_EQ(source_digest(scratch.path()), before);
}

// A damaged stream is made anew.
TEST(CodeSize, TheSameContentsAreCompressedOnce) {
  const test_support::ScratchFolder scratch;
  const char* set = std::getenv("XDG_CACHE_HOME");
  const std::string before_test = set ? set : "";
  ::setenv("XDG_CACHE_HOME", scratch.path().c_str(), 1);
  const fs::path folder = scratch / "mulligan/packed_code";
  const auto kept = [&] {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    return files;
  };
  std::string contents;
  for (int i = 0; i < 5000; ++i) contents += std::to_string(i * i % 977);
  const std::string computed = compress(Compression::brotli, contents);
  EXPECT_TRUE(compress_once(contents) == computed);
  ASSERT_EQ(kept().size(), 1u);
  const fs::path file = kept()[0];
  const std::string whole = sha256_hex(computed) + computed;
  EXPECT_TRUE(read_file(file) == whole);

  // It is taken: what is made anew is written anew.
  const auto before = fs::last_write_time(file) - std::chrono::hours(1);
  fs::last_write_time(file, before);
  EXPECT_TRUE(compress_once(contents) == computed);
  EXPECT_EQ(fs::last_write_time(file), before);
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;
  for (const std::string& damaged :
       {std::string(), whole.substr(0, 60), whole.substr(0, 64), whole + "x", flipped, computed}) {
    write_file_atomically(file, damaged);
    EXPECT_TRUE(compress_once(contents) == computed);
    EXPECT_TRUE(read_file(file) == whole);
  }
  contents += "0";
  EXPECT_TRUE(compress_once(contents) == compress(Compression::brotli, contents));
  EXPECT_EQ(kept().size(), 2u);

  // The oldest go.
  for (int i = 0; i < 70; ++i) compress_once(std::to_string(i));
  EXPECT_EQ(kept().size(), 64u);
  EXPECT_FALSE(fs::exists(file));

  // A folder that cannot be is not an error.
  ::setenv("XDG_CACHE_HOME", kept()[0].c_str(), 1);
  EXPECT_TRUE(compress_once(contents) == compress(Compression::brotli, contents));
  set ? ::setenv("XDG_CACHE_HOME", before_test.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace mulligan::artifact_evaluation_source_test
