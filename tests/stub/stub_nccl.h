// How the stub of NCCL behaves: in this process by stub_nccl(), in others by the variable
// MULLIGAN_STUB_NCCL, such as "rank=1 after=20 hangs=1".
#pragma once

struct StubNccl {
  int version = 22809;
  int rank = -1;              // the rank that the other members apply to; -1: all
  int after = 0;              // groups that go well before it
  int slow_milliseconds = 0;  // for which the meeting, or the enqueueing of a group, stays in progress
  int fails = 0;              // 1: ncclCommGetAsyncError reports an error of the network
  int hangs =
      0;  // 1: groups take no part; 2: they take part, and do not end. Until the end of the communicator
  // A call that never returns, 1: ncclGroupEnd, 2: ncclCommGetAsyncError, 3: ncclCommAbort, 4: ncclCommDestroy
  int blocks = 0;
  int breaks = 0;  // 1: the connections are lost in the midst of a group
};
extern "C" void stub_nccl(const StubNccl& wanted);
