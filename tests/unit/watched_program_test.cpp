// Running a program with a watch: what it writes, how it ends, how it is told to end.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <string>

#include "framework/core/child_process.h"

namespace mulligan::watched_program_test {
namespace {

struct Outcome {
  int status = 0;
  std::string output, errors;
};

Outcome run_shell(const std::string& script, int signal = 0) {
  Outcome outcome;
  outcome.status =
      run_program({"sh", "-c", script}, {[&](std::string_view bytes) { outcome.output += bytes; },
                                         [&](std::string_view bytes) { outcome.errors += bytes; },
                                         // Once it has said that it is ready for it.
                                         [&] { return outcome.output.empty() ? 0 : signal; }});
  return outcome;
}

TEST(WatchedProgram, BothStreamsArriveWhole) {
  const Outcome outcome =
      run_shell("i=0; while [ $i -lt 3000 ]; do echo line $i; echo error $i >&2; i=$((i+1)); done; exit 3");
  EXPECT_EQ(WEXITSTATUS(outcome.status), 3);
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3000);
  EXPECT_TRUE(outcome.output.ends_with("line 2999\n"));
  EXPECT_TRUE(outcome.errors.ends_with("error 2999\n"));
}

TEST(WatchedProgram, ASignalIsPassedOnOnce) {
  const Outcome outcome = run_shell(
      "trap 'echo told; trap \"echo again\" TERM; sleep 1; exit 4' TERM; echo ready; while :; do sleep 0.05; "
      "done",
      SIGTERM);
  EXPECT_EQ(WEXITSTATUS(outcome.status), 4);
  EXPECT_EQ(outcome.output, "ready\ntold\n");
}

TEST(WatchedProgram, AProgramThatIsNotThere) {
  EXPECT_EQ(run_program({"no-such-program-here"}, ProgramWatch{}), -1);
}

// The watch has failed: the program is ended and waited for.
TEST(WatchedProgram, AWatchThatThrowsEndsIt) {
  const ProgramWatch watch{[](std::string_view) { throw std::runtime_error("full"); }, {}, {}};
  EXPECT_THROW(run_program({"sh", "-c", "echo started; exec sleep 1000"}, watch), std::runtime_error);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

}  // namespace
}  // namespace mulligan::watched_program_test
