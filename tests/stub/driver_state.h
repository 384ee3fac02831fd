// What the parts of the driver's stub share.
#pragma once

#include <functional>
#include <string>

#include "tests/stub/streams.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace stub_driver {

inline constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNotFound = 500, kNotReady = 600,
                     kIllegalAddress = 700, kNotSupported = 801;

struct Event {
  stubs::Event mark = std::make_shared<stubs::Mark>();
  int matmuls = 0;  // that had been asked for when it was recorded
};

// 0, or after a violation the error that stays.
int answer();
// The first one counts. Any thread.
int violate(const std::string& sentence);
// What a capture does not allow, and a real driver answers by ending it.
bool refused_in_capture(const char* call);
// Work of the stream that is not left out after a violation; captured as any other.
int enqueue_always(void* stream, std::function<void()> work);
int enqueue(void* stream, std::function<void()> work);
// Does what a held stream has to do, just as far as `is_done` asks for it.
void work_off(const std::function<bool()>& is_done);

}  // namespace stub_driver
