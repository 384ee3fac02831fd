// The default number of threads of a process of the cpu backend.
#pragma once

#include <string>

namespace mulligan::cpu {

struct ThreadFacts {
  int own_cores = 1;       // physical ones that this process may use
  int parent_cores = 1;    // that its parent may use, which is more where a launcher bound this process
  int quota = 1 << 20;     // CPUs that the control groups allow
  int local_ranks = 1;     // of the run on this machine
  int openmp_threads = 0;  // OMP_NUM_THREADS, 0: not set
  bool torchrun = false;
};

// OMP_NUM_THREADS if it is set. Exception: torchrun's default of 1 for several ranks on a machine is ignored. Otherwise one per
// physical core, at most the control groups' quota, divided by the ranks of the machine unless each was bound to its share. At
// least 1. (Matmuls gain nothing from a core's second hardware thread. Threads beyond the quota are stopped in the middle of
// parallel loops.)
int thread_count(const ThreadFacts& facts);

// The facts of this process. `system`: a folder that takes the place of / where control groups are read, for tests.
ThreadFacts thread_facts(const std::string& system = "");

}  // namespace mulligan::cpu
