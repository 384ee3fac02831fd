#include "plugins/backends/cpu/thread_count.h"

#include <sched.h>
#include <unistd.h>
#include <mulligan/control_group.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "plugins/backends/common/local_ranks.h"

namespace mulligan::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Physical cores among the CPUs that a process may run on (0: this one); 0 when that is not known.
// Where the topology is not readable, each CPU counts.
int physical_cores(pid_t process) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(process, sizeof allowed, &allowed) != 0) return 0;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string siblings =
        first_line("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    if (siblings.empty()) return CPU_COUNT(&allowed);
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

}  // namespace

int thread_count(const ThreadFacts& facts) {
  const int ranks = std::max(1, facts.local_ranks);
  const bool only_torchruns = facts.torchrun && ranks > 1 && facts.openmp_threads == 1;
  if (facts.openmp_threads > 0 && !only_torchruns) return facts.openmp_threads;
  const int share = std::max(facts.own_cores, facts.parent_cores) / ranks;
  return std::max(1, std::min({facts.own_cores, share, facts.quota / ranks}));
}

ThreadFacts thread_facts(const std::string& system) {
  ThreadFacts facts;
  const int own = physical_cores(0);
  facts.own_cores = own > 0 ? own : static_cast<int>(std::thread::hardware_concurrency());
  facts.parent_cores = physical_cores(getppid());
  facts.quota = sdk::control_group_cpus(sdk::control_group_limits(system));
  facts.local_ranks = backends::local_ranks();
  facts.openmp_threads = backends::environment_number(0, "OMP_NUM_THREADS");
  facts.torchrun = std::getenv("TORCHELASTIC_RUN_ID") != nullptr;
  return facts;
}

}  // namespace mulligan::cpu
