// What a thread may reach of the machine, for as long as it lives, and every thread that it starts.
//
// Files by Landlock, everything else by a filter of system calls (seccomp). Neither can be undone, and
// neither needs privileges. A thread that was there before is not restricted: so a program can give foreign
// code a thread of its own and keep writing files itself. What shares the memory of such a thread can
// still be talked into anything by code that writes there: only a process of its own is a wall.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace mulligan {

// Files and folders, with all below them. What does not exist is left out.
struct ReachableFiles {
  std::vector<std::filesystem::path> read;    // read and execute
  std::vector<std::filesystem::path> change;  // read, write, make and remove
  std::vector<std::filesystem::path> write;   // write, make and remove
  std::vector<std::filesystem::path> look;    // folders whose names may be listed
};

// The folders of the system, which every program needs to load libraries and to look at the machine: read
// only. No folder of a user is among them, nor what users keep there: without /dev/shm and `hidden`, files and
// folders, with all below them.
std::vector<std::filesystem::path> system_folders(const std::vector<std::filesystem::path>& hidden = {});
// Everything but these files, as ReachableFiles::change: all that lies next to the paths that lead there.
// Files that appear later next to them are out of reach, too.
std::vector<std::filesystem::path> all_but(const std::vector<std::filesystem::path>& hidden);

struct Confinement {
  bool files = false;    // no others than those that were named can be opened
  bool sockets = false;  // no sockets can be made, no programs started, no other process looked into
  std::string missing;   // what the system does not offer, in words; "": nothing is missing
};

// No other files than these for the calling thread.
Confinement confine_files(const ReachableFiles& files);
// No new sockets (unless `sockets`), processes, shared memory or handles of other processes for the calling
// thread, no signals, limits or priorities by which other processes could be told something, and no way around
// these (io_uring, mounts, namespaces). `untouchable`: open files of the process that the thread can neither
// read, write nor copy.
Confinement confine_calls(bool sockets, std::span<const int> untouchable = {});
// For all threads of the process: nothing but computing, that is memory, threads, waiting and time, and what
// comes and goes by `file` (-1: no file). So no other file can be read, be it open or not, nothing of another
// process be seen, and no path be named, not even to see whether it exists. Needs all libraries to be loaded.
Confinement confine_to_computing(int file);
// This and that.
Confinement both(const Confinement& files, const Confinement& calls);
// What holds for two threads of which each has its own.
Confinement weaker(const Confinement& one, const Confinement& other);

// Does `work` in a thread of its own and waits: what confines itself there stays so, and the caller free.
// What `work` throws is thrown here.
void run_in_thread(const std::function<void()>& work);

}  // namespace mulligan
