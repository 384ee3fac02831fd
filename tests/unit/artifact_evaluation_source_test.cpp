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

TEST(EvaluationSource, EveryIncludeOfItIsInItAndNothingElse) {
  const EvaluationSource source =
      evaluation_source(tree, {"cpu", "record", "doc_lora", "adamw", "global_sgd", "sgd"});
  const std::set<fs::path> files(source.begin(), source.end());
  for (const char* wanted : {"launch/evaluator/main.cpp", "launch/evaluator/CMakeLists.txt",
                             "framework/artifact/rans.h", "optimizers/adamw/adamw_step.cu"})
    EXPECT_TRUE(files.contains(wanted)) << wanted;
  const std::regex include(
      "#include [\"<]((framework|tools|lab|launch|plugins|mulligan|optimizers|ttt)/[^\">]+)[\">]");
  for (const fs::path& file : source) {
    const std::string path = file.string();
    for (const char* other :
         {"_test.cpp", "framework/train/", "tools/", "lab/", "optimizers/muon", "plugins/backends/cuda"})
      EXPECT_EQ(path.find(other), path.npos) << file;
    const std::string text = read_file(tree / file);
    for (std::sregex_iterator it(text.begin(), text.end(), include), end; it != end; ++it) {
      fs::path wanted = (*it)[1].str();
      if (wanted.begin()->string() == "mulligan") wanted = fs::path("plugins/include") / wanted;
      EXPECT_TRUE(files.contains(wanted)) << file << " includes " << wanted;
    }
  }
}

TEST(EvaluationSource, APluginWithoutAnEntryIsCountedWhole) {
  const EvaluationSource source = evaluation_source(tree, {"cpu", "record", "muon"});
  EXPECT_NE(std::ranges::find(source, fs::path("optimizers/muon/muon.cpp")), source.end());
}

TEST(EvaluationSource, AnArchiveIsNamesLengthsAndContents) {
  const EvaluationSource source{"framework/artifact/rans.h", "launch/evaluator/CMakeLists.txt"};
  const std::string archive = evaluation_archive(tree, source);
  EXPECT_TRUE(archive.starts_with("framework/artifact/rans.h "));
  const auto files = archived_files(archive);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].second, packed_as(source[0], read_file(tree / source[0])));
  EXPECT_EQ(files[1].second, read_file(tree / source[1]));
  for (const std::string& damaged :
       {archive.substr(0, archive.size() - 1), archive + "x", "a -1\n" + archive, std::string("a 9")})
    EXPECT_THROW(archived_files(damaged), std::runtime_error);
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

}  // namespace
}  // namespace mulligan::artifact_evaluation_source_test
