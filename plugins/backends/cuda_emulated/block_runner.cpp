#include "plugins/backends/cuda_emulated/block_runner.h"

#include <algorithm>
#include <stdexcept>

namespace mulligan::cuda {
namespace {

using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;

// The runner of the launch in progress; the device is used by one thread at a time.
BlockRunner* running = nullptr;

std::string text(const mlg_emulated_dim& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) + ")";
}

mlg_emulated_dim place(std::uint64_t linear, const std::uint32_t extent[3]) {
  return {static_cast<unsigned>(linear % extent[0]), static_cast<unsigned>(linear / extent[0] % extent[1]),
          static_cast<unsigned>(linear / extent[0] / extent[1])};
}

// A whole warp, or the last and shorter one of a block.
unsigned whole_mask(std::size_t threads, unsigned warp) {
  const std::size_t lanes = std::min<std::size_t>(32, threads - std::size_t{warp} * 32);
  return lanes == 32 ? 0xFFFFFFFFu : (1u << lanes) - 1;
}

}  // namespace

BlockRunner::BlockRunner(EmulatedOrder order) : order_(order) {
  emulator_.barrier = barrier;
  emulator_.warp_operation = warp_operation;
  emulator_.fail = fail;
}

void BlockRunner::run(const mlg_emulated_function& function, const mlg_emulated_argument* arguments,
                      const Grid& grid) {
  function_ = &function;
  arguments_ = arguments;
  running = this;
  *function.emulator = &emulator_;
  emulator_.block_dim = {grid.threads[0], grid.threads[1], grid.threads[2]};
  emulator_.grid_dim = {grid.blocks[0], grid.blocks[1], grid.blocks[2]};
  threads_.resize(std::size_t{grid.threads[0]} * grid.threads[1] * grid.threads[2]);
  stack_notes_.resize(threads_.size());
  places_.resize(threads_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) places_[i] = place(i, grid.threads);
  const std::uint64_t blocks = std::uint64_t{grid.blocks[0]} * grid.blocks[1] * grid.blocks[2];
  error_.clear();
  for (std::uint64_t i = 0; i < blocks && error_.empty(); ++i) {
    const std::uint64_t half = (blocks + 1) / 2;  // interleaved: 0, half, 1, half + 1, ...
    const std::uint64_t block = order_ == EmulatedOrder::forward   ? i
                                : order_ == EmulatedOrder::reverse ? blocks - 1 - i
                                                                   : i / 2 + (i % 2) * half;
    emulator_.block_index = place(block, grid.blocks);
    run_block();
  }
  *function.emulator = nullptr;
  running = nullptr;
  if (!error_.empty()) throw std::runtime_error(error_);
}

void BlockRunner::run_block() {
  emulator_.block_serial = next_serial_++;
  emulator_.block_epoch = 0;
  warp_epochs_.assign((threads_.size() + 31) / 32, 0);
  std::fill(threads_.begin(), threads_.end(), Thread{});
  waiting_ = ended_ = 0;
  while (ended_ < threads_.size()) {
    bool progress = false;
    for (unsigned i = 0; i < warp_epochs_.size(); ++i) {
      const auto last = static_cast<unsigned>(warp_epochs_.size()) - 1;
      const unsigned warp = order_ == EmulatedOrder::reverse ? last - i : i;
      // To its next barrier or end, while its stacks are in the cache; interleaved: to the next warp operation.
      if (run_warp(warp)) progress = true;
      if (!error_.empty()) return;
    }
    if (!progress) {
      error_ = deadlock();
      return;
    }
  }
}

// The way from one thread to the next is inline: the CPU guesses where a function returns to from the calls on the stack
// before, wrongly after a switch of stacks, and each wrong guess costs as much as the rest of the switch.

[[gnu::always_inline]] inline bool BlockRunner::can_go_on(unsigned index) const {
  return threads_[index].state == State::fresh || threads_[index].state == State::ready;
}

[[gnu::always_inline]] inline unsigned BlockRunner::next_in_warp(unsigned index) const {
  const auto all = static_cast<unsigned>(threads_.size());
  const unsigned first = index / 32 * 32, end = std::min(first + 32, all);
  const bool reverse = order_ == EmulatedOrder::reverse;
  for (unsigned tried = first, next = index; tried < end; ++tried) {
    const bool last = next == (reverse ? first : end - 1);
    if (last && order_ == EmulatedOrder::interleaved) break;
    next = last ? (reverse ? end - 1 : first) : (reverse ? next - 1 : next + 1);
    if (can_go_on(next)) return next;
  }
  return all;
}

[[gnu::always_inline]] inline void BlockRunner::arrive(Transfer transfer, const StackNotes& here) {
  if (left_) *left_ = transfer.fctx;
  note_arrival(here, left_ == &scheduler_ ? &scheduler_notes_ : nullptr);
}

[[gnu::always_inline]] inline void BlockRunner::jump(Context to, const StackNotes& to_notes, Context* here,
                                                     StackNotes* notes) {
  left_ = here;
  note_leaving(notes, to_notes);
  const Transfer back = jump_fcontext(to, this);
  arrive(back, *notes);
}

[[gnu::always_inline]] inline void BlockRunner::switch_to(unsigned index, Context* here, StackNotes* notes) {
  Thread& thread = threads_[index];
  if (thread.state == State::fresh) {
    char* const top = static_cast<char*>(stacks_.top(index));
    stack_notes_[index] = {top - ThreadStacks::kBytes, ThreadStacks::kBytes};
    forget_frames(stack_notes_[index]);
    thread.context = make_fcontext(top, ThreadStacks::kBytes, thread_main);
  }
  thread.state = State::ready;
  emulator_.thread_index = places_[index];
  emulator_.thread = index;
  emulator_.lane = index % 32;
  emulator_.warp = index / 32;
  emulator_.warp_epoch = warp_epochs_[emulator_.warp];
  jump(thread.context, stack_notes_[index], here, notes);
}

[[gnu::always_inline]] inline void BlockRunner::pause() {
  if (!error_.empty()) leave();
  const unsigned index = emulator_.thread, next = next_in_warp(index);
  if (next == index) {
    emulator_.warp_epoch = warp_epochs_[emulator_.warp];
  } else if (next < threads_.size()) {
    switch_to(next, &threads_[index].context, &stack_notes_[index]);
  } else {
    jump(scheduler_, scheduler_notes_, &threads_[index].context, &stack_notes_[index]);
  }
}

bool BlockRunner::run_warp(unsigned warp) {
  const unsigned first = warp * 32;
  const unsigned lanes = std::min(32u, static_cast<unsigned>(threads_.size()) - first);
  const unsigned begin = order_ == EmulatedOrder::reverse ? first + lanes - 1 : first;
  const unsigned index = can_go_on(begin) ? begin : next_in_warp(begin);
  if (index == threads_.size()) return false;
  switch_to(index, &scheduler_, &scheduler_notes_);
  return error_.empty();
}

void BlockRunner::thread_main(Transfer transfer) {
  BlockRunner& self = *static_cast<BlockRunner*>(transfer.data);
  const unsigned index = self.emulator_.thread;
  self.arrive(transfer, self.stack_notes_[index]);
  self.function_->body(self.arguments_);
  self.threads_[index].state = State::ended;
  ++self.ended_;
  const unsigned next = self.next_in_warp(index);
  if (next < self.threads_.size()) self.switch_to(next, nullptr, nullptr);
  self.leave();
}

void BlockRunner::leave() {
  jump(scheduler_, scheduler_notes_, nullptr, nullptr);
  __builtin_unreachable();
}

void BlockRunner::barrier(const char* file, int line) {
  BlockRunner& self = *running;
  Thread& thread = self.threads_[self.emulator_.thread];
  thread.state = State::at_barrier;
  thread.file = file;
  thread.line = line;
  if (++self.waiting_ == self.threads_.size()) self.release_barrier();
  self.pause();
}

void BlockRunner::release_barrier() {
  const Thread& first = threads_.front();
  for (unsigned i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    if (thread.line != first.line || thread.file != first.file) {
      error_ = "divergent barrier: " + describe(0) + ", but " + describe(i);
      return;
    }
    thread.state = State::ready;
  }
  waiting_ = 0;
  ++emulator_.block_epoch;
}

std::uint64_t BlockRunner::warp_operation(std::int32_t operation, unsigned mask, unsigned source,
                                          std::uint64_t value, const char* file, int line) {
  BlockRunner& self = *running;
  const unsigned index = self.emulator_.thread, lane = self.emulator_.lane;
  Thread& thread = self.threads_[index];
  thread = {State::at_warp_operation, thread.context, file, line, operation, mask, source, value};
  // The warp's last one in the running order: while it is still to come, there is nothing to finish.
  const auto all = static_cast<unsigned>(self.threads_.size());
  const unsigned last = self.order_ == EmulatedOrder::reverse ? index - lane : std::min(index | 31, all - 1);
  if (mask >> lane & 1) {
    if (mask != 0xFFFFFFFFu || !self.can_go_on(last)) self.finish_warp_operation(self.emulator_.warp);
  } else {
    self.error_ = "a warp operation's mask misses its caller: " + self.describe(index);
  }
  self.pause();
  return self.threads_[index].value;
}

void BlockRunner::finish_warp_operation(unsigned warp) {
  const unsigned first = warp * 32, caller = emulator_.thread;
  const Thread& asked = threads_[caller];
  const unsigned whole = whole_mask(threads_.size(), warp);
  // Lanes that the block does not have may stand in a mask of all ones, as on a GPU.
  const unsigned mask = asked.mask == 0xFFFFFFFFu ? whole : asked.mask;
  if (mask & ~whole) {
    error_ = "a warp operation's mask names lanes that its block does not have: " + describe(caller);
    return;
  }
  // Most often others come later: from the last lane on, the one that comes last in the forward order.
  for (unsigned step = 0; step < 32; ++step) {
    const unsigned lane = order_ == EmulatedOrder::reverse ? step : 31 - step;
    if (!(mask >> lane & 1)) continue;
    const Thread& other = threads_[first + lane];
    if (other.state == State::ended) {
      error_ = "a warp operation waits for lanes that do not come: " + describe(caller) + ", while " +
               describe(first + lane);
      return;
    }
    if (other.state != State::at_warp_operation) return;  // it comes later
    if (other.mask != asked.mask || other.operation != asked.operation || other.line != asked.line) {
      error_ =
          "lanes of one warp operation disagree: " + describe(caller) + ", while " + describe(first + lane);
      return;
    }
  }
  std::uint64_t values[32], votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    values[lane] = threads_[first + lane].value;
    votes |= std::uint64_t{values[lane] != 0} << lane;
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    Thread& thread = threads_[first + lane];
    if (thread.operation == MLG_WARP_SHUFFLE) {
      if (thread.source > 31 || !(mask >> thread.source & 1)) {
        error_ = "a shuffle reads lane " + std::to_string(thread.source) +
                 ", which takes no part in it: " + describe(first + lane);
        return;
      }
      thread.value = values[thread.source];
    } else {
      thread.value = votes;
    }
    thread.state = State::ready;
  }
  if (mask == whole) ++warp_epochs_[warp];
}

std::string BlockRunner::describe(unsigned index) const {
  const Thread& thread = threads_[index];
  std::string what = "thread " + text(places_[index]);
  const std::string where = std::string(thread.file) + ":" + std::to_string(thread.line);
  if (thread.state == State::ended) return what + " has ended";
  if (thread.state == State::at_barrier) return what + " waits at the barrier of " + where;
  if (thread.state == State::at_warp_operation) {
    char mask[16];
    std::snprintf(mask, sizeof mask, "0x%08X", thread.mask);
    return what + " waits at " + where + " with the mask " + mask;
  }
  return what + " runs";
}

std::string BlockRunner::deadlock() const {
  std::string waiting, other;
  for (unsigned i = 0; i < threads_.size(); ++i) {
    std::string& one = threads_[i].state == State::ended ? other : waiting;
    if (one.empty()) one = describe(i);
  }
  for (unsigned i = 0; i < threads_.size() && other.empty(); ++i) {
    if (describe(i).substr(describe(i).find(')')) != waiting.substr(waiting.find(')'))) other = describe(i);
  }
  const bool in_warp = std::any_of(threads_.begin(), threads_.end(), [](const Thread& thread) {
    return thread.state == State::at_warp_operation;
  });
  return (in_warp ? "a warp operation waits for lanes that do not come: " : "divergent barrier: ") + waiting +
         " for ever, " + other + "; block " + text(emulator_.block_index);
}

void BlockRunner::fail(const char* what) {
  BlockRunner& self = *running;
  self.error_ = "thread " + text(self.emulator_.thread_index) + " of block " +
                text(self.emulator_.block_index) + " " + what;
  self.leave();
}

}  // namespace mulligan::cuda
