// Connections between the ranks of one communicator of NCCL's stub, threads or processes of this machine: all to
// rank 0, over sockets that have no file. The system closes them when a process dies.
#pragma once

#include <string>
#include <vector>

namespace stub {

// Closes it at the end; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_ = -1;
};

// Waiting calls return false soon after stop(), when a peer is gone, and after two minutes.
class Links {
 public:
  Links(int rank, int size);

  // A new name, at which this process listens from now on.
  static std::string listen();
  // Connects all ranks; rank 0 is in the process that listens.
  bool meet(const std::string& name);
  // Every rank's bytes, in their order.
  bool exchange(const std::string& own, std::vector<std::string>& all);
  // Nothing comes: false at stop(), true after `milliseconds`.
  bool pause(int milliseconds) const;
  void wait_for_stop() const;
  // The connections end, as they do when a cable is pulled or a peer dies.
  void lose() const;

  void stop() const;  // any thread

 private:
  bool ready(int socket, short events) const;
  bool write(int socket, const void* bytes, std::size_t count) const;
  bool read(int socket, void* bytes, std::size_t count) const;
  bool write_text(int socket, const std::string& text) const;
  bool read_text(int socket, std::string& text) const;

  int rank_, size_;
  Descriptor stop_;
  std::vector<Descriptor> sockets_;  // rank 0: by rank, itself none; others: rank 0's
};

}  // namespace stub
