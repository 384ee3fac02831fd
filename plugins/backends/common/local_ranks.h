// The ranks of a run on this machine, as launchers tell them in the environment.
#pragma once

#include <cstdlib>

namespace mulligan::backends {

// A number in the first of the variables that is set and starts with one; `otherwise` where none is.
template <typename... Names>
int environment_number(int otherwise, Names... names) {
  for (const char* name : {names...}) {
    const char* text = std::getenv(name);
    char* end = nullptr;
    const long value = text ? std::strtol(text, &end, 10) : 0;
    if (text && end != text && value >= 0 && value < (1 << 20)) return static_cast<int>(value);
  }
  return otherwise;
}

// torchrun and `mulligan launch`, deepspeed, OpenMPI, hydra, Slurm ("2(x3)": two on each of three machines;
// so the number of the first machine is taken for all).
inline int local_ranks() {
  const int ranks =
      environment_number(1, "LOCAL_WORLD_SIZE", "LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                         std::getenv("SLURM_STEP_ID") ? "SLURM_STEP_TASKS_PER_NODE" : "MPI_LOCALNRANKS");
  return ranks < 1 ? 1 : ranks;
}

inline int local_rank() {
  return environment_number(0, "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                            std::getenv("SLURM_STEP_ID") ? "SLURM_LOCALID" : "MPI_LOCALRANKID");
}

// Which of the `visible` devices a rank uses: the `wanted` one; with -1 the only one, or that of its number
// among the ranks of this machine (which may be none of them, as may the wanted one).
inline int device_of_rank(int wanted, int visible) {
  if (wanted >= 0) return wanted;
  return visible == 1 ? 0 : local_rank();
}

}  // namespace mulligan::backends
