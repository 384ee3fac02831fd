#include "framework/dist/control_channel.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "framework/core/printable.h"
#include "framework/core/seconds_since.h"
#include "framework/core/stop_request.h"

namespace mulligan {
// What the caller's threads and the loop's share. The loop's thread writes answers and the verdict here.
struct ControlChannel::State {
  explicit State(double silent_seconds) : loop(silent_seconds) {}

  SocketLoop loop;
  std::unique_ptr<ControlEnd> end;  // touched on the loop's thread only
  RankProgress progress;
  std::atomic<std::uint64_t> calls{0};
  std::atomic<std::uint8_t> in_call{0};  // Heartbeat

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::uint64_t, std::vector<std::string>> results;  // of calls
  std::map<std::uint64_t, std::string> values;                // of get()
  std::set<std::uint64_t> wanted;                             // requests that are still waited for
  std::uint64_t requests = 0;
  std::optional<Verdict> verdict;
  bool all_done = false;

  std::mutex callback_mutex;
  std::function<void(const Verdict&)> callback;

  std::mutex transfers_mutex;
  std::function<TransferCount()> count_transfers;
  TransferCount transfers;  // the last answer

  Heartbeat pulse() {
    const std::lock_guard lock(transfers_mutex);
    try {
      if (count_transfers) transfers = count_transfers();
    } catch (const Error&) {  // they failed, which join() says
    }
    return {transfers.submitted,
            transfers.completed,
            progress.steps,
            calls,
            in_call,
            static_cast<std::uint8_t>(progress.long_works > 0 ? 1 : 0),
            1e-9 * static_cast<double>(progress.waited_nanoseconds)};
  }

  // Waits until `ready` or the verdict, but not longer than `seconds`: whether it is ready.
  template <typename Ready>
  bool wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready) {
    const auto done = [&] { return ready() || verdict.has_value(); };
    if (seconds < 0) {
      changed.wait(lock, done);
    } else {
      changed.wait_for(lock, std::chrono::duration<double>(seconds), done);
    }
    return ready();
  }

  void decide(const Verdict& what, const ControlOptions& options, int rank) {
    if (options.watchdog > 0) end_process_after(options.watchdog, what.error_of(rank));
    if (!options.error_file.empty() && what.code != ExitCode::interrupted) {
      try {
        write_torchelastic_error(options.error_file, what.sentence);
      } catch (const Error& error) {
        options.log(fmt::format("warning: {}", error.what()));
      }
    }
    // Held before anyone can see the verdict: who unwinds and takes the callback away finds it done.
    const std::lock_guard calling(callback_mutex);
    {
      const std::lock_guard lock(mutex);
      verdict = what;
    }
    changed.notify_all();
    if (callback) callback(what);
  }
};

ControlChannel::ControlChannel(const LaunchEnvironment& environment, ControlOptions options)
    : environment_(environment), options_(std::move(options)), state_(new State(options_.silent)) {
  if (!options_.log) options_.log = [](const std::string&) {};
  State& state = *state_;
  const ControlEnd::Callbacks callbacks{
      [&state](std::uint64_t sequence, std::vector<std::string> parts) {
        const std::lock_guard lock(state.mutex);
        state.results.insert_or_assign(sequence, std::move(parts));
        state.changed.notify_all();
      },
      [&state](std::uint64_t request, const std::string& value) {
        const std::lock_guard lock(state.mutex);
        if (state.wanted.contains(request)) state.values.insert_or_assign(request, value);
        state.changed.notify_all();
      },
      [this](const Verdict& verdict) { state_->decide(verdict, options_, environment_.rank); },
      [&state] {
        const std::lock_guard lock(state.mutex);
        state.all_done = true;
        state.changed.notify_all();
      },
      options_.log,
      [&state] { return state.pulse(); }};
  state.end = environment_.rank == 0 ? make_control_hub(state.loop, environment_, options_, callbacks)
                                     : make_control_spoke(state.loop, environment_, options_, callbacks);
  state.loop.post([&state] { state.end->start(); });
}

ControlChannel::~ControlChannel() {
  on_verdict(nullptr);
  std::mutex mutex;
  std::condition_variable left;
  bool has_left = false;
  state_->loop.post([&] {
    state_->end->leave();
    const std::lock_guard lock(mutex);
    has_left = true;
    left.notify_one();
  });
  std::unique_lock lock(mutex);
  left.wait(lock, [&] { return has_left; });
  lock.unlock();
  state_->loop.stop();
  state_->end.reset();
}

RankProgress& ControlChannel::progress() {
  return state_->progress;
}

std::vector<std::string> ControlChannel::call(CallKind kind, std::string_view bytes) {
  if (bytes.size() > largest_message / 2) {
    throw run_error("a message of {} bytes between ranks is larger than {}; send it in parts.", bytes.size(),
                    largest_message / 2);
  }
  State& state = *state_;
  const SteadyTime begun = std::chrono::steady_clock::now();
  const std::uint64_t sequence = ++state.calls;
  state.in_call = 1;
  Arrival arrival{sequence, static_cast<std::uint8_t>(kind), std::string(bytes)};
  state.loop.post([&state, arrival = std::move(arrival)] { state.end->arrive(arrival); });
  std::unique_lock lock(state.mutex);
  // What has come counts, also where the run failed right after.
  const bool done = state.wait(lock, -1, [&] { return state.results.contains(sequence); });
  state.in_call = 0;
  state.progress.waited_nanoseconds += static_cast<std::uint64_t>(1e9 * seconds_since(begun));
  if (!done) throw state.verdict->error_of(rank());
  return std::move(state.results.extract(sequence).mapped());
}

std::vector<std::string> ControlChannel::all_gather(std::string_view bytes) {
  return call(CallKind::all_gather, bytes);
}

std::string ControlChannel::broadcast(std::string_view bytes) {
  return std::move(call(CallKind::broadcast, rank() == 0 ? bytes : std::string_view()).front());
}

void ControlChannel::barrier() {
  call(CallKind::barrier, {});
}

void ControlChannel::put(const std::string& key, std::string_view value) {
  if (key.size() + value.size() > largest_message / 2) {
    throw run_error("the value of '{}' for other ranks has {} bytes; send it in parts.", printable(key),
                    value.size());
  }
  if (const auto over = verdict()) throw over->error_of(rank());
  state_->loop.post([this, put = Put{key, std::string(value)}] { state_->end->put(put); });
}

std::string ControlChannel::get(const std::string& key, double seconds) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const std::uint64_t request = ++state.requests;
  state.wanted.insert(request);
  state.loop.post([&state, get = Get{request, key}] { state.end->get(get); });
  const bool there = state.wait(lock, seconds, [&] { return state.values.contains(request); });
  state.wanted.erase(request);
  if (there) return std::move(state.values.extract(request).mapped());
  if (state.verdict) throw state.verdict->error_of(rank());
  throw run_error("no rank has put '{}' within {:g} s.", printable(key), seconds);
}

void ControlChannel::finish() {
  State& state = *state_;
  state.loop.post([&state] { state.end->say_farewell(); });
  std::unique_lock lock(state.mutex);
  state.in_call = 2;
  ++state.calls;
  if (!state.wait(lock, -1, [&] { return state.all_done; })) throw state.verdict->error_of(rank());
}

std::optional<Verdict> ControlChannel::verdict() const {
  const std::lock_guard lock(state_->mutex);
  return state_->verdict;
}

void ControlChannel::count_transfers(std::function<TransferCount()> count) {
  const std::lock_guard lock(state_->transfers_mutex);
  state_->count_transfers = std::move(count);
}

void ControlChannel::on_verdict(std::function<void(const Verdict&)> callback) {
  const std::lock_guard lock(state_->callback_mutex);
  state_->callback = std::move(callback);
  if (const auto over = verdict(); over && state_->callback) state_->callback(*over);
}

Error ControlChannel::report_failure(const Error& own, FailureCause cause) {
  State& state = *state_;
  if (own.code() == ExitCode::interrupted) cause = FailureCause::stopped;
  const FailureReport report{static_cast<std::uint8_t>(cause), own.what()};
  std::unique_lock lock(state.mutex);
  // A verdict aborts the transfers: that one then fails says nothing new, not even of the rank that it names.
  if (state.verdict && cause == FailureCause::communication) return state.verdict->error_of(rank());
  if (!state.verdict && !state.all_done) {
    state.loop.post([&state, report] { state.end->report(report); });
    // Rank 0 answers at once; with communication it looks for a silent rank first. It may be gone itself.
    state.wait(lock, options_.silent + 4 * options_.heartbeat, [] { return false; });
  }
  // Others' failures do not make configurations or data wrong.
  const bool certain = own.code() == ExitCode::bad_configuration || own.code() == ExitCode::bad_data;
  if (!state.verdict || state.verdict->culprit == rank() || certain) return own;
  return state.verdict->error_of(rank());
}

void ControlChannel::wait_until_all_are_there() {
  State& state = *state_;
  const std::uint64_t sequence = ++state.calls;
  const Arrival arrival{sequence, static_cast<std::uint8_t>(CallKind::barrier), ""};
  state.in_call = 1;
  state.loop.post([&state, arrival] { state.end->arrive(arrival); });
  std::unique_lock lock(state.mutex);
  const auto there = [&] { return state.results.contains(sequence); };
  while (!state.wait(lock, 0.1, there)) {
    if (state.verdict) throw state.verdict->error_of(rank());
    if (const int signal = stop_signal()) {
      lock.unlock();
      throw report_failure(
          Error(ExitCode::interrupted,
                fmt::format("stopped by {} before all ranks were there.", signal_name(signal))));
    }
  }
  state.in_call = 0;
  state.results.clear();
}

std::unique_ptr<ControlChannel> meet(const LaunchEnvironment& environment, ControlOptions options) {
  if (environment.world_size > 1 && options.secret.empty() && !is_loopback_name(environment.host)) {
    throw config_error(
        "the ranks of the run meet at {}, which other machines can reach, and have no secret; give all of "
        "them the same "
        "MULLIGAN_SECRET, or MULLIGAN_SECRET_FILE naming a file with it.",
        printable(environment.host));
  }
  auto channel = std::make_unique<ControlChannel>(environment, std::move(options));
  channel->wait_until_all_are_there();
  return channel;
}

}  // namespace mulligan
