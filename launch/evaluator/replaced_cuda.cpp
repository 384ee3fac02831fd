// Of the cuda backend: threads without a look at the limits of control groups.
#include "plugins/backends/cuda/compile/background_jobs.h"

namespace mulligan::cuda {

BackgroundJobs::BackgroundJobs(int threads)
    : most_threads_(threads > 0 ? threads : std::thread::hardware_concurrency()) {}

}  // namespace mulligan::cuda
