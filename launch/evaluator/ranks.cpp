// Ranks of an evaluation: processes of this machine. Each adapts to documents of its own lanes and trains the base model on those of
// all; losses go through sockets.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "framework/core/error.h"
#include "framework/ttt/ttt_scorer.h"
#include "launch/evaluator/scoring.h"

namespace mulligan {
namespace {

std::int64_t own_rank = 0, rank_count = 1;
std::vector<int> sockets;  // of rank 0: to every other rank; of another rank: to rank 0

template <typename Call>
void transfer(Call call, int socket, std::vector<float>& values) {
  char* next = reinterpret_cast<char*>(values.data());
  for (std::size_t left = values.size() * sizeof(float); left > 0;) {
    const ssize_t bytes = call(socket, next, left, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) throw run_error("another rank has ended; see its message");
    next += bytes;
    left -= static_cast<std::size_t>(bytes);
  }
}

}  // namespace

bool become_ranks(std::int64_t count) {
  rank_count = count;
  if (count > 1) ::setenv("LOCAL_WORLD_SIZE", std::to_string(count).c_str(), 1);
  for (std::int64_t rank = 1; rank < count; ++rank) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw run_error("cannot make a socket for rank {}", rank);
    const pid_t child = ::fork();
    if (child < 0) throw run_error("cannot start rank {}", rank);
    ::close(ends[child == 0 ? 0 : 1]);
    if (child > 0) {
      sockets.push_back(ends[0]);
      continue;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with the first rank, also between two meetings
    for (const int socket : sockets) ::close(socket);
    sockets = {ends[1]};
    own_rank = rank;
    break;
  }
  if (count > 1) ::setenv("LOCAL_RANK", std::to_string(own_rank).c_str(), 1);
  return own_rank == 0;
}

std::int64_t TttScorer::rank() const {
  return own_rank;
}
std::int64_t TttScorer::world_size() const {
  return rank_count;
}
void TttScorer::prepare_exchange() {}
void TttScorer::restore(const TttStanding&) {}

void TttScorer::merge(std::vector<float>& losses) {
  if (own_rank > 0) {
    transfer(::send, sockets[0], losses);
    transfer(::recv, sockets[0], losses);
    return;
  }
  std::vector<float> other(losses.size());
  for (const int socket : sockets) {
    transfer(::recv, socket, other);
    for (std::size_t i = 0; i < losses.size(); ++i) losses[i] += other[i];
  }
  for (const int socket : sockets) transfer(::send, socket, losses);
}

void TttScorer::exchange(const LanePlan::Stretch& stretch) {
  if (!invalid_reason_.empty()) throw InvalidRun(invalid_reason_);
  merge_losses(stretch);
}

}  // namespace mulligan
