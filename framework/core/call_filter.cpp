// Filters of system calls (seccomp): confine_calls() and confine_to_computing() of sandbox.h.
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "framework/core/sandbox.h"

namespace mulligan {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t machine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t machine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t machine = 0;
#endif

// The same number on every architecture; older headers lack them.
constexpr long clone_3 = 435;

// Starting programs, looking into or taking from other processes, memory and messages that processes
// share by name, what would do one of these unseen (io_uring), what moves the file system's tree, and what says
// something to other processes: limits, priorities, places on processors, signals with a word.
const std::vector<long> other_processes = {SYS_execve,
                                           SYS_execveat,
#if defined(__x86_64__)
                                           SYS_fork,
                                           SYS_vfork,
#endif
                                           SYS_ptrace,
                                           SYS_process_vm_readv,
                                           SYS_process_vm_writev,
                                           SYS_shmget,
                                           SYS_shmat,
                                           SYS_msgget,
                                           SYS_msgsnd,
                                           SYS_msgrcv,
                                           SYS_semget,
                                           SYS_mq_open,
                                           SYS_bpf,
                                           SYS_perf_event_open,
                                           SYS_userfaultfd,
                                           SYS_add_key,
                                           SYS_request_key,
                                           SYS_keyctl,
                                           SYS_name_to_handle_at,
                                           SYS_open_by_handle_at,
                                           SYS_mount,
                                           SYS_umount2,
                                           SYS_pivot_root,
                                           SYS_chroot,
                                           SYS_setns,
                                           SYS_unshare,
                                           SYS_fanotify_init,
                                           SYS_socketpair,
                                           SYS_rt_sigqueueinfo,
                                           SYS_rt_tgsigqueueinfo,
                                           SYS_tkill,
#if defined(__x86_64__)
                                           SYS_setrlimit,
#endif
                                           SYS_setpriority,
                                           SYS_ioprio_set,
                                           SYS_sched_setaffinity,
                                           SYS_sched_setparam,
                                           SYS_sched_setscheduler,
                                           SYS_sched_setattr,
                                           SYS_migrate_pages,
                                           SYS_move_pages,
                                           424 /* pidfd_send_signal */,
                                           425 /* io_uring_setup */,
                                           426 /* io_uring_enter */,
                                           427 /* io_uring_register */,
                                           428 /* open_tree */,
                                           429 /* move_mount */,
                                           430 /* fsopen */,
                                           434 /* pidfd_open */,
                                           438 /* pidfd_getfd */,
                                           440 /* process_madvise */};

const std::vector<long> new_sockets = {SYS_socket, SYS_bind, SYS_connect, SYS_listen};

// What reads, writes, copies or changes an open file: by which argument it is named.
struct OfFile {
  long call;
  unsigned argument;
};
const std::vector<OfFile> of_files = {
    {SYS_read, 0},     {SYS_write, 0},   {SYS_pread64, 0},    {SYS_pwrite64, 0},   {SYS_readv, 0},
    {SYS_writev, 0},   {SYS_preadv, 0},  {SYS_pwritev, 0},    {SYS_preadv2, 0},    {SYS_pwritev2, 0},
    {SYS_sendto, 0},   {SYS_sendmsg, 0}, {SYS_sendmmsg, 0},   {SYS_recvfrom, 0},   {SYS_recvmsg, 0},
    {SYS_recvmmsg, 0}, {SYS_dup, 0},     {SYS_dup3, 0},
#if defined(__x86_64__)
    {SYS_dup2, 0},
#endif
    {SYS_fcntl, 0},    {SYS_ioctl, 0},   {SYS_getsockopt, 0}, {SYS_setsockopt, 0}, {SYS_sendfile, 0},
    {SYS_sendfile, 1}, {SYS_splice, 0},  {SYS_splice, 2},     {SYS_shutdown, 0},   {SYS_mmap, 4}};

// What computing takes: memory, threads, waiting, time.
const std::vector<long> computing = {SYS_mmap,
                                     SYS_munmap,
                                     SYS_mremap,
                                     SYS_mprotect,
                                     SYS_madvise,
                                     SYS_brk,
                                     SYS_futex,
                                     SYS_clone,
                                     SYS_set_robust_list,
                                     SYS_set_tid_address,
                                     SYS_exit,
                                     SYS_exit_group,
                                     SYS_sched_yield,
                                     SYS_sched_getaffinity,
                                     SYS_gettid,
                                     SYS_getpid,
                                     SYS_getrandom,
                                     SYS_membarrier,
                                     SYS_getcpu,
                                     SYS_gettimeofday,
                                     SYS_clock_gettime,
                                     SYS_clock_getres,
                                     SYS_nanosleep,
                                     SYS_clock_nanosleep,
                                     SYS_restart_syscall,
                                     SYS_rt_sigaction,
                                     SYS_rt_sigprocmask,
                                     SYS_rt_sigreturn,
                                     SYS_rt_sigtimedwait,
                                     SYS_sigaltstack,
                                     SYS_tgkill,
#if defined(__x86_64__)
                                     SYS_arch_prctl,  // tiles (AMX) are asked for when they are first used
#endif
                                     SYS_rseq,
                                     449 /* futex_waitv */};
const std::vector<long> computing_by_one_file = {SYS_read, SYS_recvfrom, SYS_sendto, SYS_close};
const std::vector<long> waiting_for_files = {
#if defined(__x86_64__)
    SYS_poll,
#endif
    SYS_ppoll};

constexpr std::size_t at(unsigned argument) {
  return offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t);
}

// Looks at one call after the other. What is refused ends with EACCES, and so does every call of another
// machine's numbering (32 bits, x32). All numbers that are compared have 32 bits.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, machine, 1, 0);
    end(EACCES);
    load_call();
#if defined(__x86_64__)
    jump(BPF_JGE, 0x40000000, 0, 1);
    end(EACCES);
#endif
  }
  void refuse(const std::vector<long>& calls, int error = EACCES) {
    for (const long call : calls) when(call, {error, 0, Test::always, 0});
  }
  void allow(const std::vector<long>& calls) {
    refuse(calls, 0);
  }
  enum class Test { always, equal, other, all_bits, not_all_bits };
  // Ends `call` with `error` (0: lets it through) where its argument is so.
  void refuse_where(long call, unsigned argument, Test test, std::uint32_t value, int error = EACCES) {
    when(call, {error, at(argument), test, value});
  }
  void refuse_unless_null(long call, unsigned argument) {
    for (const std::uint32_t half : {0, 4}) when(call, {EACCES, at(argument) + half, Test::other, 0});
  }
  // 0, or why not. What nothing was said of ends with `otherwise`.
  int install(unsigned flags, int otherwise = 0) {
    if (machine == 0) return ENOSYS;
    end(otherwise);
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    const long result = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (result > 0) return ESRCH;  // a thread that cannot follow
    return result < 0 ? errno : 0;
  }

 private:
  struct End {
    int error;
    std::size_t place;  // of 32 bits of an argument
    Test test;
    std::uint32_t value;
  };
  void when(long call, const End& what) {
    const auto number = static_cast<std::uint32_t>(call);
    if (what.test == Test::always) {
      jump(BPF_JEQ, number, 0, 1);
      return end(what.error);
    }
    const bool bits = what.test == Test::all_bits || what.test == Test::not_all_bits;
    const bool negated = what.test == Test::other || what.test == Test::not_all_bits;
    jump(BPF_JEQ, number, 0, bits ? 5 : 4);
    load(what.place);
    if (bits) code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, what.value));
    jump(BPF_JEQ, what.value, negated ? 1 : 0, negated ? 0 : 1);
    end(what.error);
    load_call();
  }
  void load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  void load_call() {
    load(offsetof(seccomp_data, nr));
  }
  // Skips so many instructions where it holds, and where not.
  void jump(unsigned short test, std::uint32_t value, std::uint8_t holds, std::uint8_t fails) {
    code_.push_back(BPF_JUMP(static_cast<unsigned short>(BPF_JMP | test | BPF_K), value, holds, fails));
  }
  void end(int error) {
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, error == 0
                                                  ? SECCOMP_RET_ALLOW
                                                  : SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)));
  }

  std::vector<sock_filter> code_;
};

// Signals to this process alone, threads and no processes, and no limits of any process.
void refuse_processes(Filter& filter) {
  const auto own = static_cast<std::uint32_t>(::getpid());
  filter.refuse_where(SYS_kill, 0, Filter::Test::other, own);
  filter.refuse_where(SYS_tgkill, 0, Filter::Test::other, own);
  filter.refuse_where(SYS_clone, 0, Filter::Test::not_all_bits, CLONE_THREAD | CLONE_VM);
  // Its flags are out of a filter's sight; the C library takes clone() where it is missing.
  filter.refuse({clone_3}, ENOSYS);
}

Confinement outcome(int failed, const char* what) {
  if (failed == 0) return {false, true, {}};
  return {false, false, fmt::format("{} (seccomp: {})", what, std::strerror(failed))};
}

}  // namespace

Confinement confine_calls(bool sockets, std::span<const int> untouchable) {
  Filter filter;
  refuse_processes(filter);
  filter.refuse(other_processes);
  filter.refuse_unless_null(SYS_prlimit64, 2);  // a new limit
  if (!sockets) filter.refuse(new_sockets);
  for (const int file : untouchable) {
    for (const OfFile& one : of_files)
      filter.refuse_where(one.call, one.argument, Filter::Test::equal, static_cast<std::uint32_t>(file));
  }
  Confinement done = outcome(filter.install(0), "sockets and programs");
  done.sockets = done.sockets && !sockets;
  if (sockets && done.missing.empty()) done.missing = "sockets (the ranks need them)";
  return done;
}

Confinement confine_to_computing(int file) {
  Filter filter;
  refuse_processes(filter);
  filter.refuse_where(SYS_mmap, 3, Filter::Test::not_all_bits, MAP_ANONYMOUS);
  filter.allow(computing);
  for (const long call : computing_by_one_file)
    filter.refuse_where(call, 0, Filter::Test::equal, static_cast<std::uint32_t>(file), 0);
  filter.allow(waiting_for_files);
  return outcome(filter.install(SECCOMP_FILTER_FLAG_TSYNC, EACCES), "all but computing");
}

}  // namespace mulligan
