// Preloaded by tests/attack/kills and tests/attack/system_errors. It counts the program's calls of the C
// library for files and threads. At a chosen call it ends the process or lets the call fail.
// ATTACK_COUNTS: a file for the counts, "NAME COUNT" a line, written by exit(). ATTACK_CALL: the call that is
// struck, such as rename. ATTACK_AT: its how-manieth, from 1. ATTACK_DO: kill (SIGKILL before that call); an
// errno number, with which it fails; half (write() and read() deal with half of the bytes).
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace {

constexpr const char* kNames[] = {
    "open",    "fopen", "read",           "write", "fsync",          "rename", "mkdir", "unlink",    "remove",
    "opendir", "mmap",  "mmap_anonymous", "stat",  "pthread_create", "lseek",  "fstat", "ftruncate", "flock"};
std::atomic<long> counts[std::size(kNames)];
int own_process = 0;  // a program started by this one is left alone

enum class Strike { none, fail, half };

// Counts a call. `none`: it goes on; `fail`: it fails, errno is set.
Strike strike(const char* name) {
  std::size_t call = 0;
  while (std::strcmp(kNames[call], name) != 0) ++call;
  const long number = ++counts[call];
  static const char* const chosen = std::getenv("ATTACK_CALL");
  static const char* const at = std::getenv("ATTACK_AT");
  static const char* const action = std::getenv("ATTACK_DO");
  if (!chosen || !at || !action || ::getpid() != own_process || std::strcmp(chosen, name) != 0)
    return Strike::none;
  if (number != std::atol(at)) return Strike::none;
  if (std::strcmp(action, "kill") == 0) ::kill(::getpid(), SIGKILL);
  if (std::strcmp(action, "half") == 0) return Strike::half;
  errno = std::atoi(action);
  return Strike::fail;
}

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

__attribute__((constructor)) void begin() {
  own_process = ::getpid();
  for (auto& count : counts) count = 0;
}

__attribute__((destructor)) void end() {
  const char* path = std::getenv("ATTACK_COUNTS");
  if (!path || ::getpid() != own_process) return;
  static const auto really_open = real<FILE* (*)(const char*, const char*)>("fopen");
  if (FILE* file = really_open(path, "w")) {
    for (std::size_t call = 0; call < std::size(kNames); ++call)
      std::fprintf(file, "%s %ld\n", kNames[call], counts[call].load());
    std::fclose(file);
  }
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

// NAME as the C library has it, counted as CALL.
#define STRUCK(result, name, call, failed, parameters, arguments)      \
  extern "C" result name parameters {                                  \
    static const auto really = real<result(*) parameters>(#name);      \
    return strike(call) == Strike::fail ? (failed) : really arguments; \
  }

#define STRUCK_OPEN(name)                                                   \
  extern "C" int name(const char* path, int flags, ...) {                   \
    static const auto really = real<int (*)(const char*, int, ...)>(#name); \
    va_list arguments;                                                      \
    va_start(arguments, flags);                                             \
    const mode_t mode = mode_of(flags, arguments);                          \
    va_end(arguments);                                                      \
    return strike("open") == Strike::fail ? -1 : really(path, flags, mode); \
  }

STRUCK_OPEN(open)
STRUCK_OPEN(open64)

extern "C" int openat(int folder, const char* path, int flags, ...) {
  static const auto really = real<int (*)(int, const char*, int, ...)>("openat");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return strike("open") == Strike::fail ? -1 : really(folder, path, flags, mode);
}

extern "C" ssize_t write(int file, const void* bytes, size_t count) {
  static const auto really = real<ssize_t (*)(int, const void*, size_t)>("write");
  const Strike what = strike("write");
  if (what == Strike::fail) return -1;
  return really(file, bytes, what == Strike::half && count > 1 ? count / 2 : count);
}

extern "C" ssize_t read(int file, void* bytes, size_t count) {
  static const auto really = real<ssize_t (*)(int, void*, size_t)>("read");
  const Strike what = strike("read");
  if (what == Strike::fail) return -1;
  return really(file, bytes, what == Strike::half && count > 1 ? count / 2 : count);
}

STRUCK(FILE*, fopen, "fopen", nullptr, (const char* path, const char* mode), (path, mode))
STRUCK(FILE*, fopen64, "fopen", nullptr, (const char* path, const char* mode), (path, mode))
STRUCK(ssize_t, writev, "write", -1, (int file, const struct iovec* parts, int count), (file, parts, count))
STRUCK(int, fsync, "fsync", -1, (int file), (file))
STRUCK(int, rename, "rename", -1, (const char* from, const char* to), (from, to))
STRUCK(int, renameat2, "rename", -1, (int a, const char* from, int b, const char* to, unsigned flags),
       (a, from, b, to, flags))
STRUCK(int, mkdir, "mkdir", -1, (const char* path, mode_t mode), (path, mode))
STRUCK(int, unlink, "unlink", -1, (const char* path), (path))
STRUCK(int, unlinkat, "unlink", -1, (int folder, const char* path, int flags), (folder, path, flags))
STRUCK(int, remove, "remove", -1, (const char* path), (path))
STRUCK(DIR*, opendir, "opendir", nullptr, (const char* path), (path))
STRUCK(DIR*, fdopendir, "opendir", nullptr, (int file), (file))
STRUCK(int, stat, "stat", -1, (const char* path, struct stat* facts), (path, facts))
STRUCK(int, lstat, "stat", -1, (const char* path, struct stat* facts), (path, facts))
STRUCK(int, fstat, "fstat", -1, (int file, struct stat* facts), (file, facts))
STRUCK(off_t, lseek, "lseek", -1, (int file, off_t to, int whence), (file, to, whence))
STRUCK(off_t, lseek64, "lseek", -1, (int file, off_t to, int whence), (file, to, whence))
STRUCK(int, ftruncate, "ftruncate", -1, (int file, off_t length), (file, length))
STRUCK(int, flock, "flock", -1, (int file, int action), (file, action))
STRUCK(void*, mmap, file >= 0 ? "mmap" : "mmap_anonymous", MAP_FAILED,
       (void* at, size_t length, int protection, int flags, int file, off_t offset),
       (at, length, protection, flags, file, offset))
STRUCK(void*, mmap64, file >= 0 ? "mmap" : "mmap_anonymous", MAP_FAILED,
       (void* at, size_t length, int protection, int flags, int file, off_t offset),
       (at, length, protection, flags, file, offset))
STRUCK(int, pthread_create, "pthread_create", errno,
       (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument),
       (thread, attributes, start, argument))
