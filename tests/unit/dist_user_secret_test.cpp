// The secret of ranks that were given none.
#include "framework/ranks/control_options.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <thread>

#include "framework/core/file.h"
#include "framework/ranks/socket_loop.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_user_secret_test {
namespace {

namespace fs = std::filesystem;
using test_support::ScratchFolder;

EnvironmentLookup home_at(const fs::path& home) {
  return [home](const std::string& name) {
    return name == "HOME" ? std::optional(home.string()) : std::nullopt;
  };
}

TEST(UserSecret, IsMadeOnceAndForThisUserAlone) {
  const ScratchFolder home;
  const std::string secret = user_secret(home_at(home.path()));
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(user_secret(home_at(home.path())), secret);
  struct stat found {};
  ASSERT_EQ(stat((home.path() / ".mulligan" / "secret").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
  ASSERT_EQ(stat((home.path() / ".mulligan").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
  EXPECT_EQ(std::distance(fs::directory_iterator(home.path() / ".mulligan"), {}), 1);
  const ScratchFolder other;
  EXPECT_NE(user_secret(home_at(other.path())), secret);
}

TEST(UserSecret, RanksThatComeAtOnceGetTheSame) {
  const ScratchFolder home;
  std::vector<std::string> secrets(8);
  std::vector<std::thread> threads;
  for (std::string& secret : secrets)
    threads.emplace_back([&] { secret = user_secret(home_at(home.path())); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(secrets.begin(), secrets.end()).size(), 1U);
}

TEST(UserSecret, WhatOthersMayReadOrChangeIsRefused) {
  const ScratchFolder home;
  user_secret(home_at(home.path()));
  const fs::path folder = home.path() / ".mulligan", file = folder / "secret";
  const auto refusal = [&] { return sentence_of([&] { user_secret(home_at(home.path())); }); };
  fs::permissions(file, fs::perms(0640));
  EXPECT_TRUE(contains(refusal(), "others may read"));
  fs::permissions(file, fs::perms(0600));
  fs::permissions(folder, fs::perms(0722));
  EXPECT_TRUE(contains(refusal(), "others may write to"));
  fs::permissions(folder, fs::perms(0700));
  fs::remove(file);
  fs::create_symlink("/etc/hostname", file);
  EXPECT_TRUE(contains(refusal(), "is not a file"));
  fs::remove(file);
  write_file_atomically(file, "\n");
  fs::permissions(file, fs::perms(0600));
  EXPECT_TRUE(contains(refusal(), "empty line"));
}

TEST(OwnAddresses, TheLoopbackIsHereAndOthersAreNot) {
  for (const char* own : {"127.0.0.1", "127.9.9.9", "::1", "localhost"})
    EXPECT_TRUE(names_this_machine(own)) << own;
  for (const char* other : {"192.0.2.7", "2001:db8::7", ""}) EXPECT_FALSE(names_this_machine(other)) << other;
}

}  // namespace
}  // namespace mulligan::dist_user_secret_test
