// How the stand-in of NCCL behaves.
#pragma once

struct StandInNccl {
  int slow_milliseconds = 0;  // for which a group and the meeting stay in progress
  bool fails = false;         // reports an error of the network
  int hang_rank = -1;         // this rank's groups wait until the communicator is aborted
  int version = 22809;
};
extern "C" void stand_in_nccl(const StandInNccl& wanted);
