// Stubs of NVIDIA's libraries, of CUDA 12.4: what they are told to do, and what they count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

struct Allocation {
  std::size_t bytes;
  bool freed;
};

// What a launch does, for tests that compute: set together with the function's code (stub_announces).
struct StubLaunch {
  unsigned grid[3], block[3], shared_bytes;
  const void* const* values;  // where each argument lies
};
struct StubKernel {
  std::size_t parameters = 0;  // of 8 bytes or less
  std::function<void(const StubLaunch&)> run;
};

struct Stub {
  // The first call that touched memory which is not the device's, or beyond an allocation. From then on the
  // driver answers every call that can fail as a real one does after an illegal address.
  std::string violation;

  // Whether results are computed: matmuls, attention, and kernels that were announced.
  bool computes = false;

  // The driver. Memory of the device is memory of the host. Streams are threads; where they are not, work is done
  // when it is enqueued, or, while the stream is held, when somebody waits for it.
  int driver_version = 12040;
  // Memory of the card, which all processes share that MULLIGAN_STUB_CARD="FILE BYTES" gives the same file; without it
  // the process's own.
  std::size_t card_bytes = std::size_t{80} << 30;
  int devices = 1;
  // Each context that is asked for its card's UUID has another; otherwise all have one.
  bool own_cards = true;
  bool hold = false;
  bool streams_are_threads = true;           // set before the first stream is made
  int fresh_byte = 0;                        // what new memory is full of
  bool captures = false, capturing = false;  // of the stream: possible, and under way
  int graph_launches = 0;
  int modules_loaded = 0, modules_unloaded = 0, launches = 0, copies = 0, host_allocations = 0;
  int waits = 0;                    // for an event that had not come
  std::vector<std::string> loaded;  // what modules were loaded of

  // NVRTC. Compilations wait, a while, until so many are under way at once; of functions "refused" they fail.
  int compile_together = 1;
  int compilations = 0, under_way = 0, most_at_once = 0;

  // cuBLASLt proposes algorithms 0, 1, ...; those of a negative duration fail.
  std::vector<float> milliseconds = {3, 1, 2};
  int last_algorithm = -1;
  int requests = 0;  // for proposals
  int matmuls = 0;
  int timed = 0;                       // algorithms whose time was asked for
  int timed_matmuls = 0;               // matmuls between the two events of the last timing
  int refused_algorithm = -1;          // that a check finds unfit for a matmul
  unsigned reduction_schemes = 7;      // that were asked for last
  std::function<void()> on_matmul;     // called once, in the next matmul
  int zero_operands = 0;               // matmuls with an operand of zeros alone
  unsigned long long allowed = ~0ULL;  // implementations that were asked for last
  int compute_type = -1;               // of the last matmul

  // cuDNN.
  std::size_t cudnn_version = 91900, cudnn_cuda = 12090;
  bool execution_fails = false;
  bool planning_throws = false;            // the next plan, once: std::bad_alloc
  std::int64_t plan_workspace = 17 << 10;  // bytes
  int plans = 0, executions = 0, handles = 0, handles_destroyed = 0;
  int plan_together = 1;  // plans wait, a while, until so many are under way at once
  int plans_under_way = 0, most_plans_at_once = 0;
};

// The one of the process.
extern "C" Stub& stub();

// Whether `bytes` from `address` on lie within one live allocation of the device; where not, the violation says
// so of `call` and its `argument`.
extern "C" bool stub_touches(const char* call, const char* argument, const void* address, std::size_t bytes);
// Another violation, as a sentence.
extern "C" void stub_violates(const char* sentence);
// Whether there was none.
extern "C" bool stub_is_sound();
// Whether the stream is being captured.
extern "C" bool stub_capturing();
// Does `work` in the order of the stream, and not after a violation. Returns the driver's answer.
extern "C" int stub_enqueues(void* stream, std::function<void()> work);
// What the next function that this thread gets out of a module does when it is launched.
extern "C" void stub_announces(StubKernel kernel);
// Bytes from `address` to the end of the live allocation that holds it; 0: none does.
extern "C" std::size_t stub_bytes_from(const void* address);
