#include "framework/ranks/control_channel.h"

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "framework/core/printable.h"
#include "framework/core/steady_time.h"
#include "framework/core/stop_request.h"
#include "framework/ranks/communicator_watch.h"

namespace mulligan {

// State that the caller's threads share with the loop's. The loop's thread writes answers and the verdict here.
struct ControlChannel::State {
  explicit State(const ControlOptions& options) : loop(options.silent), transfers(options.heartbeat) {}

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

  CommunicatorWatch transfers;

  Heartbeat pulse() const {
    const TransferCount counted = transfers.counted();
    std::uint8_t waits_in = in_call;
    if (waits_in == waits_in_nothing && progress.in_communicator > 0) waits_in = waits_in_communicator;
    return {counted.submitted,
            counted.completed,
            progress.steps,
            calls,
            progress.communicator_calls,
            waits_in,
            static_cast<std::uint8_t>(progress.long_works > 0 ? 1 : 0),
            1e-9 * static_cast<double>(progress.waited_nanoseconds)};
  }

  // Ends the run for a rank that must stop but cannot, because a call of the communicator's library does not return; also if the
  // others would wait longer. On the loop's thread.
  void look_for_blocked_stop(const ControlOptions& options) {
    const int signal = stop_signal();
    if (signal == 0 || progress.in_communicator == 0) return;
    const double seconds = SocketLoop::now() - progress.in_communicator_since;
    if (seconds < options.wedged) return;
    loop.post([this, signal, seconds] {
      end->report(
          {static_cast<std::uint8_t>(FailureCause::stopped),
           fmt::format("{} asked for it, and a call of the communicator has not returned for {:.0f} s",
                       signal_name(signal), seconds)});
    });
  }

  // Waits until `ready` or the verdict, at most `seconds`. Returns whether it is ready.
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
    // Both in one critical section. So a transfer that the verdict aborts never fails before the verdict is visible. A caller
    // that sees the verdict, unwinds and removes the callback finds the abort done.
    const std::lock_guard lock(mutex);
    transfers.decide(what);
    verdict = what;
    changed.notify_all();
  }
};

ControlChannel::ControlChannel(const LaunchEnvironment& environment, ControlOptions options)
    : environment_(environment), options_(std::move(options)), state_(new State(options_)) {
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
      [this] {
        state_->look_for_blocked_stop(options_);
        return state_->pulse();
      }};
  state.end = environment_.rank == 0 ? make_control_server(state.loop, environment_, options_, callbacks)
                                     : make_control_client(state.loop, environment_, options_, callbacks);
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
  state.in_call = waits_in_call;
  Arrival arrival{sequence, static_cast<std::uint8_t>(kind), std::string(bytes)};
  state.loop.post([&state, arrival = std::move(arrival)] { state.end->arrive(arrival); });
  std::unique_lock lock(state.mutex);
  // What has come counts, also where the run failed right after.
  const bool done = state.wait(lock, -1, [&] { return state.results.contains(sequence); });
  state.in_call = waits_in_nothing;
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

std::string ControlChannel::consult(std::string_view bytes, const Answer& answer) {
  std::vector<std::string> parts = call(CallKind::consult, bytes);
  if (rank() != 0) return std::move(parts.front());
  CallResult result{state_->calls, {answer(parts)}};
  std::string own = result.parts.front();
  if (own.size() > largest_message / 2) {
    throw run_error("an answer of {} bytes to all ranks is larger than {}; send it in parts.", own.size(),
                    largest_message / 2);
  }
  state_->loop.post([this, result = std::move(result)] { state_->end->answer(result); });
  return own;
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
  state.in_call = waits_in_farewell;
  ++state.calls;
  if (!state.wait(lock, -1, [&] { return state.all_done; })) throw state.verdict->error_of(rank());
}

std::optional<Verdict> ControlChannel::verdict() const {
  const std::lock_guard lock(state_->mutex);
  return state_->verdict;
}

// A call of the library that never returns keeps the caller here.
void ControlChannel::count_transfers(std::function<TransferCount()> count) {
  const CommunicatorCall call(state_->progress);
  state_->transfers.count_transfers(std::move(count));
}

void ControlChannel::on_verdict(std::function<void(const Verdict&)> callback) {
  const CommunicatorCall call(state_->progress);
  state_->transfers.on_verdict(std::move(callback));
}

std::string ControlChannel::own_address() {
  std::promise<std::string> address;
  state_->loop.post([&] { address.set_value(state_->end->own_address()); });
  return address.get_future().get();
}

CommunicatorCall::CommunicatorCall(RankProgress& progress) : progress_(progress) {
  if (progress_.in_communicator++ == 0) progress_.in_communicator_since = SocketLoop::now();
  ++progress_.communicator_calls;
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
  state.in_call = waits_in_call;
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
  state.in_call = waits_in_nothing;
  state.results.clear();
}

std::unique_ptr<ControlChannel> meet(const LaunchEnvironment& environment, ControlOptions options) {
  if (environment.world_size > 1 && options.secret.empty() && !is_loopback_name(environment.host)) {
    throw config_error(
        "the ranks of the run meet at {}, which other machines can reach, and have no secret; give all of "
        "them the same MULLIGAN_SECRET, or MULLIGAN_SECRET_FILE naming a file with it.",
        printable(environment.host));
  }
  auto channel = std::make_unique<ControlChannel>(environment, std::move(options));
  channel->wait_until_all_are_there();
  return channel;
}

}  // namespace mulligan
