#include "tests/support/thread_group.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <thread>

#include "framework/core/error.h"

namespace mulligan {

struct ThreadGroups::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  std::string failure;
};

namespace {

constexpr double kLongest = 60;  // seconds that a collective call waits

class ThreadGroup final : public HostGroup {
 public:
  ThreadGroup(std::shared_ptr<ThreadGroups::State> state, int rank, int size)
      : state_(std::move(state)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int world_size() const override { return size_; }
  int local_rank() const override { return rank_; }
  int local_size() const override { return size_; }

  std::string call(std::string_view, std::string_view bytes, const Answer& answer) override {
    const std::string key = fmt::format("call {} of rank ", calls_++), answered = key + "0, answered";
    put(key + std::to_string(rank_), bytes);
    if (rank_ > 0) return get(answered, kLongest);
    std::vector<std::string> all;
    for (int other = 0; other < size_; ++other) all.push_back(get(key + std::to_string(other), kLongest));
    put(answered, answer(all));
    return get(answered, kLongest);
  }

  void put(const std::string& key, std::string_view value) override {
    const std::lock_guard lock(state_->mutex);
    require_running();
    if (!state_->values.emplace(key, value).second) throw run_error("'{}' was put twice.", key);
    state_->changed.notify_all();
  }
  std::string get(const std::string& key, double seconds) override {
    std::unique_lock lock(state_->mutex);
    const bool found = state_->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] {
      return !state_->failure.empty() || state_->values.contains(key);
    });
    require_running();
    if (!found) throw run_error("no rank put '{}' within {} s.", key, seconds);
    return state_->values.at(key);
  }

 private:
  void require_running() const {
    if (!state_->failure.empty()) throw Error(ExitCode::peer_failed, state_->failure);
  }
  std::shared_ptr<ThreadGroups::State> state_;
  int rank_, size_;
  int calls_ = 0;
};

}  // namespace

ThreadGroups::ThreadGroups(int size) : state_(std::make_shared<State>()) {
  std::signal(SIGPIPE, SIG_IGN);  // as the program does: communicators write to ranks that may be gone
  for (int rank = 0; rank < size; ++rank) {
    groups_.push_back(std::make_unique<ThreadGroup>(state_, rank, size));
  }
}

ThreadGroups::~ThreadGroups() = default;

HostGroup& ThreadGroups::group(int rank) {
  return *groups_.at(static_cast<std::size_t>(rank));
}

void ThreadGroups::fail(const std::string& sentence) {
  const std::lock_guard lock(state_->mutex);
  if (state_->failure.empty()) state_->failure = sentence;
  state_->changed.notify_all();
}

std::vector<std::string> run_ranks(ThreadGroups& world, int size,
                                   const std::function<void(HostGroup&)>& body) {
  std::vector<std::string> sentences(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        body(world.group(rank));
      } catch (const std::exception& error) {
        sentences[static_cast<std::size_t>(rank)] = error.what();
        world.fail(fmt::format("rank {} failed: {}", rank, error.what()));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sentences;
}

std::vector<std::string> run_ranks(int size, const std::function<void(HostGroup&)>& body) {
  ThreadGroups world(size);
  return run_ranks(world, size, body);
}

}  // namespace mulligan
