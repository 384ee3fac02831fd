// Many ranks of one run without processes or sockets: rank 0's end of the control channel, and links that answer
// it as ranks do. For what rank 0 does for each message, and how many bytes it sends.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "framework/ranks/control_server.h"

namespace mulligan::test_support {

class SimulatedRanks {
 public:
  // Returns when all are there.
  explicit SimulatedRanks(int size);
  ~SimulatedRanks();

  // Every rank comes to a call with these bytes, and rank 0 answers. Returns the bytes that it sends to all of them.
  std::size_t call(const std::string& bytes, const std::string& answer);
  // Different buffers that were sent in the last call.
  std::size_t buffers_of_last_call() const { return buffers_.size(); }
  // How many ranks were sent this as the one part of the last result.
  int answered_with(const std::string& part) const;

 private:
  class SimulatedLink;
  void on_loop(const std::function<void()>& work);

  int size_;
  SocketLoop loop_{10};
  std::unique_ptr<ControlServer> hub_;
  std::vector<std::shared_ptr<SimulatedLink>> links_;
  std::set<const std::string*> buffers_;
  std::uint64_t sequence_ = 0;
  std::size_t bytes_ = 0, done_ = 0;
};

}  // namespace mulligan::test_support
