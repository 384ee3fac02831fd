// OutputQueue: bytes on their way to a terminal or pipe that may not take them now.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// Never waits for the reader: whoever watches ranks must not stand still because a pager does.
class OutputQueue {
 public:
  explicit OutputQueue(int descriptor) : descriptor_(descriptor) {}

  void put(std::string_view bytes);
  // Writes as much as is taken at once. After a failure all that comes is dropped.
  void write_some();

  bool empty() const { return waiting_.empty(); }
  // So much waits that nothing more should be read from the ranks.
  bool full() const { return waiting_.size() > (1 << 20); }
  int descriptor() const { return descriptor_; }
  const std::string& failure() const { return failure_; }  // the system's reason, "" for none

 private:
  int descriptor_;
  std::string waiting_, failure_;
};

}  // namespace mulligan
