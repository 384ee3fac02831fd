// Runs the blocks of an emulated launch one after another: each thread on a stack of its own, switched at
// barriers and warp operations (Boost.Context).
//
// Reported as errors: a barrier that not all threads of the block reach, or that they reach at different
// lines; a warp operation whose mask misses the caller, names a lane that has ended or waits elsewhere,
// or differs between its lanes; a shuffle from a lane outside of the mask; and what the memory checks of
// the kernels find.
#pragma once

#include <mulligan/cuda/emulator.h>
#include <mulligan/cuda_kernel.h>

#include <boost/context/detail/fcontext.hpp>

#include <string>
#include <vector>

#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda_emulated/stack_notes.h"
#include "plugins/backends/cuda_emulated/thread_stacks.h"

namespace mulligan::cuda {

// In which order blocks and threads run. A kernel without races gives the same bits in each.
enum class EmulatedOrder { forward, reverse, interleaved };

// The backend's key emulated_order, one of those words.
inline EmulatedOrder emulated_order(const std::string& word) {
  return word == "forward"   ? EmulatedOrder::forward
         : word == "reverse" ? EmulatedOrder::reverse
                             : EmulatedOrder::interleaved;
}

class BlockRunner {
 public:
  explicit BlockRunner(EmulatedOrder order);

  // Throws std::runtime_error with what went wrong, in which thread and block.
  void run(const mlg_emulated_function& function, const mlg_emulated_argument* arguments, const Grid& grid);

 private:
  using Context = boost::context::detail::fcontext_t;
  using Transfer = boost::context::detail::transfer_t;
  enum class State { fresh, ready, at_barrier, at_warp_operation, ended };

  struct alignas(64) Thread {  // a line of the cache
    State state = State::fresh;
    Context context = nullptr;
    const char* file = "";
    int line = 0, operation = 0;  // operation to value: of the warp operation that it waits in
    unsigned mask = 0, source = 0;
    std::uint64_t value = 0;
  };

  void run_block();
  // Lets the threads of a warp go on, one after another, until none can (interleaved: until each had its turn once); false where
  // none could, or after an error.
  bool run_warp(unsigned warp);
  bool can_go_on(unsigned index) const;
  // The thread of the same warp whose turn comes after that of `index`; threads_.size(): none can go on.
  unsigned next_in_warp(unsigned index) const;
  // From the running stack to that of thread `index`. Returns when the running one's turn comes again; `here`, where that is kept,
  // is null for one that has ended.
  void switch_to(unsigned index, Context* here, StackNotes* notes);
  void jump(Context to, const StackNotes& to_notes, Context* here, StackNotes* notes);
  // The first thing on a stack that was switched to.
  void arrive(Transfer transfer, const StackNotes& here);
  // To run_block(), not to be resumed. The thread's stack is left as it is: nothing on it may own memory.
  [[noreturn]] void leave();
  // From the running thread to the next of its warp, or back to run_block(); returns when it is resumed, which after an error it
  // is not.
  void pause();
  void finish_warp_operation(unsigned warp);
  void release_barrier();
  // What the threads of a block that cannot go on wait for.
  std::string deadlock() const;
  std::string describe(unsigned thread) const;

  static void thread_main(Transfer transfer);
  static void barrier(const char* file, int line);
  static std::uint64_t warp_operation(std::int32_t operation, unsigned mask, unsigned source,
                                      std::uint64_t value, const char* file, int line);
  static void fail(const char* what);

  EmulatedOrder order_;
  mlg_emulator emulator_{};
  ThreadStacks stacks_;
  std::vector<Thread> threads_;
  std::vector<mlg_emulated_dim> places_;  // threadIdx, by thread
  std::vector<StackNotes> stack_notes_;   // by thread
  StackNotes scheduler_notes_;
  std::vector<std::uint32_t> warp_epochs_;
  unsigned waiting_ = 0, ended_ = 0;
  const mlg_emulated_function* function_ = nullptr;
  const mlg_emulated_argument* arguments_ = nullptr;
  Context scheduler_ = nullptr;
  Context* left_ = nullptr;  // where the stack that was left last is kept
  std::string error_;
  std::uint64_t next_serial_ = 1;
};

}  // namespace mulligan::cuda
