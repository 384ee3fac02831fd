/* Preloaded: every clock of the C library runs at a third of its speed, and the libraries' clock_gettime is this one.
 * As an auditor (LD_AUDIT) it does nothing. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec* time) {
  static struct timespec start[16];
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || clock < 0 || clock >= 16) return (int)result;
  if (start[clock].tv_sec == 0 && start[clock].tv_nsec == 0) start[clock] = *time;
  const long long second = 1000000000;
  const long long begin = start[clock].tv_sec * second + start[clock].tv_nsec;
  const long long now = begin + (time->tv_sec * second + time->tv_nsec - begin) / 3;
  time->tv_sec = now / second;
  time->tv_nsec = now % second;
  return 0;
}

__attribute__((visibility("default"))) unsigned la_version(unsigned version) {
  return version;
}
