#include "framework/ranks/control_channel.h"

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/core/steady_time.h"
#include "framework/core/stop_request.h"

namespace mulligan {
namespace {

// Writes the verdict to the file where torchrun looks for the reason of a failure (TORCHELASTIC_ERROR_FILE). Throws as
// write_file_atomically.
void write_torchelastic_error(const std::filesystem::path& path, const std::string& sentence) {
  // The one clock of the control channel that may jump: the time is for people.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  const nlohmann::json text = {
      {"message",
       {{"message", sentence},
        {"extraInfo", {{"py_callstack", sentence}, {"timestamp", std::to_string(seconds)}}}}}};
  write_file_atomically(path, text.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
}

// Ends the process in `seconds` with the exit code of `error`, even if the process hangs.
void end_process_after(double seconds, const Error& error) {
  const std::string sentence =
      fmt::format("mulligan: the process did not end by itself {:g} s after: {}\n", seconds, error.what());
  std::thread([seconds, sentence, code = static_cast<int>(error.code())] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, sentence.data(), sentence.size());
    ::_exit(code);
  }).detach();
}

}  // namespace

ControlChannel::ControlChannel(const LaunchEnvironment& environment, ControlOptions options)
    : environment_(environment), options_(std::move(options)), loop_(options_.silent) {
  if (!options_.log) options_.log = [](const std::string&) {};
  const ControlEnd::Callbacks callbacks{[this](const ControlMessage& message) { take(message); },
                                        [this] {
                                          look_for_blocked_stop();
                                          return pulse();
                                        }};
  const auto make = environment_.rank == 0 ? make_control_server : make_control_client;
  end_ = make(loop_, environment_, options_, callbacks);
  loop_.post([this] { end_->start(); });
}

ControlChannel::~ControlChannel() {
  {
    const CommunicatorCall call(this);
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    if (counter_.joinable()) counter_.join();
    if (aborter_.joinable()) aborter_.join();
  }
  const auto left = std::make_shared<std::promise<void>>();
  loop_.post([this, left] {
    end_->leave();
    left->set_value();
  });
  left->get_future().wait();
  loop_.stop();
  end_.reset();
}

template <typename Message>
void ControlChannel::tell(const Message& message) {
  loop_.post([this, message = message_of(message)] { end_->tell(message); });
}

void ControlChannel::take(const ControlMessage& message) {
  if (message.kind == Verdict::kind) return decide(read_message<Verdict>(message));
  std::unique_lock lock(mutex_);
  if (message.kind == CallResult::kind) {
    result_ = read_message<CallResult>(message).parts;
  } else if (message.kind == Put::kind) {
    auto put = read_message<Put>(message);
    values_.emplace(std::move(put.key), std::move(put.value));
  } else {
    all_done_ = true;
  }
  changed_.notify_all();
  lock.unlock();
  if (message.kind == Put::kind && options_.news) options_.news();
}

void ControlChannel::decide(const Verdict& verdict) {
  const Verdict what{verdict.culprit, verdict.code, printable(verdict.sentence)};
  if (options_.watchdog > 0) end_process_after(options_.watchdog, what.error_of(rank()));
  if (!options_.error_file.empty() && what.code != ExitCode::interrupted) {
    try {
      write_torchelastic_error(options_.error_file, what.sentence);
    } catch (const Error& error) {
      options_.log(fmt::format("warning: {}", error.what()));
    }
  }
  // The verdict calls the aborts, too. So a transfer that it aborts never fails before the verdict is visible. A caller that sees the
  // verdict, unwinds and removes the callback finds the abort done.
  {
    const std::lock_guard lock(mutex_);
    verdict_ = what;
  }
  changed_.notify_all();
  if (options_.news) options_.news();
}

Heartbeat ControlChannel::pulse() const {
  TransferCount counted;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [_, one] : watched_) {
      counted.submitted += one.counted.submitted;
      counted.completed += one.counted.completed;
    }
  }
  std::uint8_t waits_in = in_call_;
  if (waits_in == waits_in_nothing && progress_.in_communicator > 0) waits_in = waits_in_communicator;
  return {counted.submitted,
          counted.completed,
          progress_.steps,
          calls_,
          progress_.communicator_calls,
          waits_in,
          static_cast<std::uint8_t>(progress_.long_works > 0 ? 1 : 0),
          1e-9 * static_cast<double>(progress_.waited_nanoseconds)};
}

// Ends the run for a rank that must stop but cannot, because a call of the communicator's library does not return; also if the
// others would wait longer.
void ControlChannel::look_for_blocked_stop() {
  const int signal = stop_signal();
  if (signal == 0 || progress_.in_communicator == 0) return;
  const double seconds = steady_seconds() - progress_.in_communicator_since;
  if (seconds < options_.wedged) return;
  tell(FailureReport{
      FailureCause::stopped,
      fmt::format("{} asked for it, and a call of the communicator has not returned for {:.0f} s",
                  signal_name(signal), seconds)});
}

template <typename Ready>
bool ControlChannel::wait(std::unique_lock<std::mutex>& lock, double seconds, Ready ready) {
  const auto done = [&] { return ready() || verdict_.has_value(); };
  if (seconds < 0) {
    changed_.wait(lock, done);
  } else {
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), done);
  }
  return ready();
}

namespace {

void require_room(std::size_t bytes) {
  if (bytes <= largest_text) return;
  throw run_error("a message of {} bytes between ranks is larger than {}; send it in parts.", bytes,
                  largest_text);
}

}  // namespace

std::string ControlChannel::call(std::string_view name, std::string_view bytes, const Answer& answer) {
  require_room(bytes.size());
  const SteadyTime begun = std::chrono::steady_clock::now();
  in_call_ = waits_in_call;
  tell(Arrival{++calls_, std::string(name), std::string(bytes)});
  std::unique_lock lock(mutex_);
  // What has come counts, also where the run failed right after.
  while (!wait(lock, met_ ? -1 : 0.1, [&] { return result_.has_value(); })) {
    if (verdict_) {
      in_call_ = waits_in_nothing;
      throw verdict_->error_of(rank());
    }
    if (const int signal = stop_signal()) {
      lock.unlock();
      throw report_failure(
          Error(ExitCode::interrupted,
                fmt::format("stopped by {} before all ranks were there.", signal_name(signal))));
    }
  }
  std::vector<std::string> parts = *std::exchange(result_, std::nullopt);
  lock.unlock();
  in_call_ = waits_in_nothing;
  if (met_) progress_.waited_nanoseconds += static_cast<std::uint64_t>(1e9 * seconds_since(begun));
  if (rank() != 0) return std::move(parts.at(0));
  std::string own = answer(parts);
  require_room(own.size());
  tell(CallResult{{own}});
  return own;
}

void ControlChannel::put(const std::string& key, std::string_view value) {
  require_room(key.size() + value.size());
  if (const auto over = verdict()) throw over->error_of(rank());
  tell(Put{key, std::string(value)});
}

std::string ControlChannel::get(const std::string& key, double seconds) {
  std::unique_lock lock(mutex_);
  if (wait(lock, seconds, [&] { return values_.contains(key); })) return values_.at(key);
  if (verdict_) throw verdict_->error_of(rank());
  throw run_error("no rank has put '{}' within {:g} s.", printable(key), seconds);
}

std::optional<std::string> ControlChannel::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

void ControlChannel::finish() {
  tell(Farewell{});
  std::unique_lock lock(mutex_);
  in_call_ = waits_in_farewell;
  ++calls_;
  if (!wait(lock, -1, [&] { return all_done_; })) throw verdict_->error_of(rank());
}

std::optional<Verdict> ControlChannel::verdict() const {
  const std::lock_guard lock(mutex_);
  return verdict_;
}

std::string ControlChannel::own_address() {
  const auto address = std::make_shared<std::promise<std::string>>();
  loop_.post([this, address] { address->set_value(end_->own_address()); });
  return address->get_future().get();
}

CommunicatorCall::CommunicatorCall(ControlChannel* channel)
    : progress_(channel ? &channel->progress() : nullptr) {
  if (!progress_) return;
  if (progress_->in_communicator++ == 0) progress_->in_communicator_since = steady_seconds();
  ++progress_->communicator_calls;
}

Error ControlChannel::report_failure(const Error& own, FailureCause cause) {
  if (own.code() == ExitCode::interrupted) cause = FailureCause::stopped;
  std::unique_lock lock(mutex_);
  // A verdict aborts the transfers: that one then fails says nothing new, not even of the rank that it names.
  if (verdict_ && cause == FailureCause::communication) return verdict_->error_of(rank());
  if (!verdict_ && !all_done_) {
    tell(FailureReport{cause, own.what()});
    // Rank 0 answers at once; with communication it looks for a silent rank first. It may be gone itself.
    wait(lock, options_.silent + 4 * options_.heartbeat, [] { return false; });
  }
  // Others' failures do not make configurations or data wrong.
  const bool certain = own.code() == ExitCode::bad_configuration || own.code() == ExitCode::bad_data;
  if (!verdict_ || verdict_->culprit == rank() || certain) return own;
  return verdict_->error_of(rank());
}

std::unique_ptr<ControlChannel> meet(const LaunchEnvironment& environment, ControlOptions options) {
  if (environment.world_size > 1 && options.secret.empty() && !is_loopback_name(environment.host)) {
    throw config_error(
        "the ranks of the run meet at {}, which other machines can reach, and have no secret; give all of "
        "them the same MULLIGAN_SECRET, or MULLIGAN_SECRET_FILE naming a file with it.",
        printable(environment.host));
  }
  auto channel = std::make_unique<ControlChannel>(environment, std::move(options));
  channel->barrier();
  channel->met_ = true;
  return channel;
}

// A call of the library that never returns keeps the caller in watch() and forget().
void ControlChannel::watch(const void* key, std::function<TransferCount()> count,
                           std::function<void(const Verdict&)> abort) {
  const CommunicatorCall call(this);
  std::unique_lock lock(mutex_);
  if (count && !counter_.joinable()) counter_ = start_thread([this] { count_transfers(); });
  if (abort && !aborter_.joinable()) aborter_ = start_thread([this] { abort_transfers(); });
  const Watched& one =
      watched_.insert_or_assign(key, Watched{std::move(count), std::move(abort)}).first->second;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !owes_abort(one); });
}

void ControlChannel::forget(const void* key) {
  const CommunicatorCall call(this);
  std::unique_lock lock(mutex_);
  const auto one = watched_.find(key);
  if (one == watched_.end()) return;
  changed_.wait(lock, [&] { return counting_ != &one->second && !owes_abort(one->second); });
  watched_.erase(one);
}

void ControlChannel::count_transfers() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    // The one that is called stays: forget() waits for it.
    for (auto one = watched_.begin(); one != watched_.end() && !ends_; ++one) {
      if (!one->second.count) continue;
      counting_ = &one->second;
      lock.unlock();
      std::optional<TransferCount> answer;
      try {
        answer = one->second.count();
      } catch (const Error&) {  // they failed, which join() says
      }
      lock.lock();
      counting_ = nullptr;
      if (answer) one->second.counted = *answer;
      changed_.notify_all();
    }
    changed_.wait_for(lock, std::chrono::duration<double>(options_.heartbeat / 4), [&] { return ends_; });
  }
}

void ControlChannel::abort_transfers() {
  std::unique_lock lock(mutex_);
  const auto owed = [&] {
    return std::ranges::find_if(watched_, [&](const auto& one) { return owes_abort(one.second); });
  };
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || owed() != watched_.end(); });
    const auto one = owed();
    if (one == watched_.end()) return;
    aborting_ = &one->second;
    const auto aborts = std::exchange(one->second.abort, nullptr);
    lock.unlock();
    aborts(*verdict_);
    lock.lock();
    aborting_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace mulligan
