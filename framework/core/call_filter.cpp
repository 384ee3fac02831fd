// Filters of system calls (seccomp): confine_calls() and confine_paths() of sandbox.h.
#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
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

// Starting programs, looking into or taking from other processes, memory and messages that processes
// share by name, what would do one of these unseen (io_uring), and what moves the file system's tree.
const std::vector<long> other_processes = {SYS_execve,
                                           SYS_execveat,
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

const std::vector<long> paths = {
#if defined(__x86_64__)
    SYS_open,
    SYS_creat,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_rename,
    SYS_link,
    SYS_symlink,
    SYS_unlink,
    SYS_mkdir,
    SYS_rmdir,
    SYS_chmod,
    SYS_chown,
    SYS_mknod,
    SYS_utime,
    SYS_utimes,
    SYS_getdents,
    SYS_uselib,
    SYS_futimesat,
#endif
    SYS_openat,
    437 /* openat2 */,
    SYS_statx,
    SYS_faccessat,
    439 /* faccessat2 */,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_statfs,
    SYS_chdir,
    SYS_truncate,
    SYS_renameat2,
    SYS_linkat,
    SYS_symlinkat,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_utimensat,
    SYS_getxattr,
    SYS_lgetxattr,
    SYS_listxattr,
    SYS_setxattr,
    SYS_inotify_add_watch,
    SYS_kill,
    SYS_tkill};

constexpr std::size_t at(std::size_t offset) {
  return offsetof(seccomp_data, args) + offset;
}

// Refuses these with EACCES, and every call of another machine's numbering (32 bits, x32).
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    skip_if_equal(machine, 1);
    refuse();
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
    refuse();
#endif
  }
  void refuse(const std::vector<long>& calls) {
    for (const long call : calls) {
      code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
      refuse();
    }
  }
  // fstat() is this call with a flag (AT_EMPTY_PATH) and needs no path.
  void refuse_stat_by_path() {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_newfstatat, 0, 4));
    load(at(3 * sizeof(std::uint64_t)));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1000, 1, 0));
    refuse();
    load(offsetof(seccomp_data, nr));
  }
  // 0, or why not.
  int install(unsigned flags) {
    if (machine == 0) return ENOSYS;
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno;
    const long result = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (result > 0) return ESRCH;  // a thread that cannot follow
    return result < 0 ? errno : 0;
  }

 private:
  void load(std::size_t offset) {
    code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset)));
  }
  void skip_if_equal(std::uint32_t value, std::uint8_t count) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, count, 0));
  }
  void refuse() {
    code_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES));
  }

  std::vector<sock_filter> code_;
};

Confinement outcome(int failed, const char* what) {
  if (failed == 0) return {false, true, {}};
  return {false, false, fmt::format("{} (seccomp: {})", what, std::strerror(failed))};
}

}  // namespace

Confinement confine_calls(bool sockets) {
  Filter filter;
  filter.refuse(other_processes);
  if (!sockets) filter.refuse(new_sockets);
  Confinement done = outcome(filter.install(0), "sockets and programs");
  done.sockets = done.sockets && !sockets;
  if (sockets && done.missing.empty()) done.missing = "sockets (the ranks need them)";
  return done;
}

Confinement confine_paths() {
  Filter filter;
  filter.refuse(paths);
  filter.refuse_stat_by_path();
  return outcome(filter.install(SECCOMP_FILTER_FLAG_TSYNC), "paths");
}

}  // namespace mulligan
