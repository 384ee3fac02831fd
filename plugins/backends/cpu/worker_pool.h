// The threads that run parallel loops of kernels: one pool for the process, woken per loop.
//
// This is not OpenMP's pool. Its threads wait for each other by spinning; if other programs also use the machine's cores, two
// of them were ten times slower than one. Here a worker that gets no CPU time is not waited for: the running threads take its
// pieces.
#pragma once

#include <cstdint>

namespace mulligan::cpu {

// Threads of the loops that this thread starts from now on, itself included; at least 1.
void set_thread_count(int threads);
int thread_count();

// Which of the loop's threads is calling, 0 to thread_count() - 1, for scratch memory; 0 outside of a loop.
int thread_index();

// mlg_launch.parallel_for: body over [0, count) in pieces of at least `grain`, at most 16 per thread, handed
// out one by one. Kernels' results do not depend on the cut (contract of kernel.h). Inside a loop, or while
// another thread's loop holds the pool, it runs in the calling thread. `body` must not throw.
void parallel_for(std::int64_t count, std::int64_t grain,
                  void (*body)(void* context, std::int64_t begin, std::int64_t end), void* context);

}  // namespace mulligan::cpu
