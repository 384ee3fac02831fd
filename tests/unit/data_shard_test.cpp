// Token shards: round trip, discovery, and one refusal per kind of damage.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/shard.h"
#include "framework/data/shard_checks.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_shard_test {
namespace {

namespace fs = std::filesystem;

TEST(Shard, RoundTripsTheExtremeTokensInThePublishedLayout) {
  const fs::path folder = fresh_folder("shard_round_trip");
  const std::vector<std::uint16_t> tokens{1, 0, 65535, 258, 1};
  write_shard(folder / "a.bin", tokens);
  const Shard shard(folder / "a.bin");
  EXPECT_EQ(shard.read_all(), tokens);
  const std::string bytes = read_file(folder / "a.bin");
  ASSERT_EQ(bytes.size(), 1024u + 10u);
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x88\xd8\x34\x01\x01\0\0\0\x05\0\0\0", 12));
  EXPECT_EQ(bytes.substr(12, 1012), std::string(1012, '\0'));
  EXPECT_EQ(bytes.substr(1024 + 4, 4), "\xff\xff\x02\x01");
}

TEST(Shard, RefusesEveryKindOfDamageNamingFileAndBytes) {
  const fs::path folder = fresh_folder("shard_damage");
  write_shard(folder / "good.bin", std::vector<std::uint16_t>(100, 7));
  const std::string good = read_file(folder / "good.bin");
  const auto with_word = [&](std::size_t word, std::int32_t value) {
    std::string bytes = good;
    std::memcpy(bytes.data() + 4 * word, &value, 4);
    return bytes;
  };
  const struct {
    const char* name;
    std::string bytes;
    std::vector<std::string> said;
  } cases[] = {
      {"empty.bin", "", {"truncated", "0 bytes", "1024"}},
      {"header_only_half.bin", good.substr(0, 500), {"truncated", "500"}},
      {"last_token_missing.bin",
       good.substr(0, good.size() - 2),
       {"truncated", "100 tokens", "1224", "1222"}},
      {"odd_size.bin", good.substr(0, good.size() - 1), {"truncated", "1224", "1223"}},
      {"too_long.bin", good + "xx", {"corrupt", "1224", "1226"}},
      {"magic.bin", with_word(0, 20240521), {"20240521", "20240520"}},
      {"version.bin", with_word(1, 2), {"version 2"}},
      {"no_tokens.bin", with_word(2, 0), {"0 tokens"}},
      {"negative.bin", with_word(2, -5), {"-5 tokens"}},
      {"text.bin", std::string(4096, 'a'), {"not a token shard"}},
  };
  for (const auto& test : cases) {
    write_file_atomically(folder / test.name, test.bytes);
    const std::string message = sentence_of(ExitCode::bad_data, [&] { Shard shard(folder / test.name); });
    EXPECT_TRUE(contains(message, test.name));
    for (const std::string& part : test.said) EXPECT_TRUE(contains(message, part)) << part << ": " << message;
  }
  sentence_of(ExitCode::bad_data, [&] { Shard shard(folder / "missing.bin"); });
  sentence_of(ExitCode::bad_data, [&] { Shard shard{folder}; });
  sentence_of(ExitCode::run_failed, [&] { write_shard(folder / "none.bin", {}); });
}

// A mapping would end the process by SIGBUS.
TEST(Shard, ThatBecomesShorterWhileItIsReadIsASentence) {
  const fs::path folder = fresh_folder("shard_shrinks");
  write_shard(folder / "a.bin", std::vector<std::uint16_t>(100'000, 7));
  const Shard shard(folder / "a.bin");
  fs::resize_file(folder / "a.bin", 1024 + 1000);
  std::vector<std::uint16_t> some(600);
  shard.read(0, std::span(some).first(500));
  const std::string said = sentence_of(ExitCode::bad_data, [&] { shard.read(0, some); });
  EXPECT_TRUE(contains(said, "a.bin"));
  EXPECT_TRUE(contains(said, "changed while it was read"));
}

TEST(Shard, APipeIsRefusedWithoutWaitingForIt) {
  const fs::path folder = fresh_folder("shard_pipe");
  ASSERT_EQ(::mkfifo((folder / "a.bin").c_str(), 0600), 0);
  sentence_of(ExitCode::bad_data, [&] { Shard shard(folder / "a.bin"); });
}

TEST(FindShards, TakesFoldersGlobsAndFilesSortedByNameOnce) {
  const fs::path folder = fresh_folder("find_shards");
  for (const char* name : {"b.bin", "a.bin", "c.bin", "note.txt"}) write_file_atomically(folder / name, "x");
  const auto names = [&](const std::vector<std::string>& patterns) {
    std::string joined;
    for (const auto& path : find_shards(patterns)) joined += path.filename().string() + " ";
    return joined;
  };
  EXPECT_EQ(names({folder.string()}), "a.bin b.bin c.bin ");
  EXPECT_EQ(names({(folder / "[bc].bin").string()}), "b.bin c.bin ");
  EXPECT_EQ(names({(folder / "c.bin").string(), (folder / "?.bin").string()}), "a.bin b.bin c.bin ");
  const std::string message =
      sentence_of(ExitCode::bad_data, [&] { find_shards({(folder / "train_*.bin").string()}); });
  EXPECT_TRUE(contains(message, "train_*.bin"));
}

}  // namespace
}  // namespace mulligan::data_shard_test
