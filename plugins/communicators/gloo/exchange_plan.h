// What one rank sends, receives and adds for a batch of collectives. Of gloo nothing is needed here but that
// messages between two ranks keep their order.
//
// Reductions use direct exchange. All other ranks send one share of the elements to a rank, and it adds them up. For all_reduce
// it sends the sums to all. So there are two messages in sequence for any number of ranks; each byte moves as often as in a
// ring; and sums are in rank order. Small transfers to the same rank travel together, so a batch of a hundred small gradients
// costs as much as one.
#pragma once

#include <mulligan/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mulligan::gloo_ranks {

// A contiguous run of bytes of a message.
struct Part {
  char* memory;  // of a tensor; null: only the message's own buffer has it
  std::size_t bytes;
  std::size_t offset;  // in the message
};

// Sent and received in the tensors' memory (one part), or packed in a buffer.
struct Message {
  std::vector<Part> parts;
  std::size_t bytes = 0;
  bool packed = false;
  char* buffer = nullptr;  // within the workspace, where it has one

  char* address() const { return buffer ? buffer : parts.front().memory; }
};

// Elements that this rank adds up.
struct Sum {
  // Where another rank's elements arrive: in the last of its first `messages` messages (0: the own rank's).
  struct Source {
    std::size_t messages = 0, offset = 0;
  };
  std::int32_t dtype;
  std::int64_t count;
  void* to;
  std::vector<Source> sources;     // by rank
  std::vector<const void*> parts;  // by rank: the elements; known when the plan has its place
  std::size_t sums_ready;          // so many messages of Plan::sums are complete with this one
};

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

// Per rank (the own one empty), in the order of sending. `incoming` comes before `incoming_sums`.
struct Plan {
  std::vector<std::vector<Message>> outgoing, incoming;
  std::vector<Message> sums;  // to every other rank
  std::vector<std::vector<Message>> incoming_sums;
  std::vector<Sum> additions;
  std::vector<Copy> copies;  // within this rank
  std::size_t workspace_bytes = 0;

  // Gives the buffers their place in `workspace` (64-byte aligned), of workspace_bytes.
  void place(char* workspace);
};

// The host has checked the collectives (mlg_collective).
Plan make_plan(std::span<const sdk::Collective> list, int rank, int size);

class Mesh;
// Carries out a plan over the connections of a mesh. Returns when all of it is done on this rank and its memory is free. `mesh` may be
// null for a world of one. Throws std::runtime_error; then the mesh is of no use any more.
void exchange(const Plan& plan, Mesh* mesh, int rank, int size);

}  // namespace mulligan::gloo_ranks
