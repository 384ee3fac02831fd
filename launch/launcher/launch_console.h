// LaunchConsole: the terminal of `mulligan launch`, on which rank 0 writes as if it were alone and the other
// ranks write whole lines between.
#pragma once

#include <string_view>

#include "framework/report/console.h"
#include "launch/launcher/output_queue.h"

namespace mulligan {

enum class RankStream { output = 1, errors = 2 };

class LaunchConsole {
 public:
  LaunchConsole();

  bool is_terminal(RankStream stream) const;
  // Bytes of rank 0's own terminal, as they are: they may draw a live line.
  void raw(std::string_view bytes);
  // A whole line, without its line break.
  void line(RankStream stream, std::string_view text);
  // "launch: ..." on standard error: what the launcher itself does.
  void note(std::string_view text);

  OutputQueue& queue(RankStream stream) {
    return stream == RankStream::output || one_terminal_ ? output_ : errors_;
  }
  bool full() const { return output_.full() || errors_.full(); }
  bool empty() const { return output_.empty() && errors_.empty(); }
  void write_some();

 private:
  Terminal output_terminal_, errors_terminal_;
  bool one_terminal_;  // both streams end there, and one queue keeps their order
  OutputQueue output_, errors_;
  bool inside_line_ = false;  // of rank 0 on the terminal
};

}  // namespace mulligan
