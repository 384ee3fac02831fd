// The source of an evaluation is closed under includes; what is taken out means nothing to a compiler.
#include "framework/artifact/evaluation_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan::artifact_evaluation_source_test {
namespace {

namespace fs = std::filesystem;

const fs::path tree = MULLIGAN_SOURCE_DIR;

TEST(EvaluationSource, CommentsAndIndentationGoLiteralsStay) {
  EXPECT_EQ(without_comments("int  a;  // one\n\n\n  /* two\n */ int b;\n"), "int a;\nint b;\n");
  EXPECT_EQ(without_comments("f(\"// no  comment\", 'x', '\"', \"\\\"  //\");"),
            "f(\"// no  comment\", 'x', '\"', \"\\\"  //\");\n");
  EXPECT_EQ(without_comments("auto s = R\"x(a  //\n\n  b)\" )x\";  // c"),
            "auto s = R\"x(a  //\n\n  b)\" )x\";\n");
  EXPECT_EQ(without_comments("int n = 1'000'000;  // '\nchar c = '/';"),
            "int n = 1'000'000;\nchar c = '/';\n");
  EXPECT_EQ(without_comments("int x = 0xA'Bu; /* unfinished"), "int x = 0xA'Bu;\n");
  EXPECT_EQ(without_comments("#define A(x)   \\\n  (x)  // y\n"), "#define A(x) \\\n(x)\n");
  EXPECT_EQ(without_comments(""), "");
  EXPECT_EQ(without_comments("// nothing"), "");
}

TEST(EvaluationSource, EveryIncludeOfItIsInIt) {
  const EvaluationSource source =
      evaluation_source(tree, {"cpu", "self", "doc_lora", "adamw", "global_sgd", "sgd"});
  const std::set<fs::path> files(source.files.begin(), source.files.end());
  EXPECT_TRUE(files.contains("launch/evaluator/main.cpp"));
  EXPECT_TRUE(files.contains("framework/artifact/rans.h"));
  for (const char* folder :
       {"framework/train", "tools/record", "tools/doctor", "lab/probe", "optimizers/muon"})
    EXPECT_EQ(std::ranges::find(source.folders, folder), source.folders.end()) << folder;
  const std::regex include(
      "#include [\"<]((framework|tools|lab|launch|plugins|mulligan|optimizers|ttt)/[^\">]+)[\">]");
  for (const fs::path& file : source.files) {
    const std::string text = read_file(tree / file);
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it) {
      fs::path wanted = (*it)[1].str();
      if (wanted.begin()->string() == "mulligan") wanted = fs::path("plugins/include") / wanted;
      EXPECT_TRUE(files.contains(wanted)) << file << " includes " << wanted;
    }
  }
}

TEST(EvaluationSource, UnknownPluginsAndTreesAreNamed) {
  const auto sentence = [](const fs::path& root, const std::string& plugin) {
    try {
      evaluation_source(root, {plugin});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(sentence(tree, "not_there").find("'not_there' is not a plugin of the source tree"),
            std::string::npos);
  EXPECT_NE(sentence(tree / "docs", "cpu").find("is not mulligan's source tree"), std::string::npos);
}

TEST(EvaluationSource, LessIsCountedThanTheWholeTree) {
  const EvaluationSource source = evaluation_source(tree, {"cuda"});
  const std::uint64_t bytes = packed_evaluation(tree, {{}, {"framework/artifact/code_coder.cpp"}}).size();
  EXPECT_GT(bytes, 500U);
  EXPECT_LT(bytes, fs::file_size(tree / "framework/artifact/code_coder.cpp") / 2);
  EXPECT_GT(source.files.size(), 200U);
}

}  // namespace
}  // namespace mulligan::artifact_evaluation_source_test
