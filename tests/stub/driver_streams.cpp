// Streams, captures, graphs and events of the driver's stub. One stream of a process may be captured at a time.
// MULLIGAN_STUB_DRIVER="R N": the first stream of the process with RANK=R, the backend's, hangs after N pieces of work,
// as in a kernel that never ends.
#include <atomic>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "tests/stub/driver_state.h"
#include "tests/stub/stub.h"

namespace stub_driver {
namespace {

using Graph = std::vector<std::function<void()>>;

std::deque<std::function<void()>> held;
void* captured_stream = nullptr;
Graph captured;
int the_stream;  // where streams are not threads

bool is_captured(const void* stream) {
  return stub().capturing && stream == captured_stream;
}
// After how many pieces of work the stream that is made now hangs.
unsigned long work_before_hanging() {
  static std::atomic<bool> is_first = true;
  const char *text = std::getenv("MULLIGAN_STUB_DRIVER"), *own = std::getenv("RANK");
  if (!text || !*text || !own || !is_first.exchange(false)) return ~0ul;
  char* rest = nullptr;
  const bool is_meant = std::strtoul(text, &rest, 10) == std::strtoul(own, nullptr, 10);
  return is_meant ? std::strtoul(rest, nullptr, 10) : ~0ul;
}

stubs::Stream& thread_of(void* stream) {
  return *static_cast<stubs::Stream*>(stream);
}

}  // namespace

bool refused_in_capture(const char* call) {
  if (stub().capturing) violate(std::string(call) + ": within a capture of the stream");
  return stub().capturing;
}

void work_off(const std::function<bool()>& is_done) {
  for (; !held.empty() && !is_done(); held.pop_front()) held.front()();
}

int enqueue_always(void* stream, std::function<void()> work) {
  if (is_captured(stream)) {
    captured.push_back(std::move(work));
  } else if (stub().streams_are_threads) {
    thread_of(stream).add(std::move(work));
  } else {
    held.push_back(std::move(work));
    if (!stub().hold) work_off([] { return false; });
  }
  return answer();
}

int enqueue(void* stream, std::function<void()> work) {
  if (answer() != 0) return answer();
  return enqueue_always(stream, [work = std::move(work)] {
    if (answer() == 0) work();
  });
}

}  // namespace stub_driver

using namespace stub_driver;

EXPORTED bool stub_capturing() {
  return stub().capturing;
}
EXPORTED int stub_enqueues(void* stream, std::function<void()> work) {
  return enqueue(stream, std::move(work));
}

EXPORTED int cuStreamCreate(void** stream, unsigned) {
  *stream =
      stub().streams_are_threads ? new stubs::Stream(work_before_hanging()) : static_cast<void*>(&the_stream);
  return 0;
}
EXPORTED int cuStreamDestroy_v2(void* stream) {
  if (stub().streams_are_threads) delete &thread_of(stream);
  return 0;
}
EXPORTED int cuStreamSynchronize(void* stream) {
  if (refused_in_capture("cuStreamSynchronize")) return answer();
  if (stub().streams_are_threads) {
    thread_of(stream).synchronize();
  } else {
    work_off([] { return false; });
  }
  return answer();
}
EXPORTED int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  if (is_captured(stream)) return violate("cuStreamWaitEvent: within a capture of the stream");
  if (stub().streams_are_threads) thread_of(stream).wait_for(static_cast<Event*>(event)->mark);
  return answer();
}
EXPORTED int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  return enqueue(stream, [function, data] { function(data); });
}

EXPORTED int cuStreamBeginCapture_v2(void* stream, int) {
  if (refused_in_capture("cuStreamBeginCapture")) return answer();
  if (!stub().captures) return kNotSupported;
  stub().capturing = true;
  captured_stream = stream;
  captured.clear();
  return answer();
}
EXPORTED int cuStreamEndCapture(void*, void** graph) {
  if (!stub().capturing) return kNotSupported;
  stub().capturing = false;
  *graph = new Graph(std::exchange(captured, {}));
  return answer();
}
EXPORTED int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  *executable = new Graph(*static_cast<Graph*>(graph));
  return answer();
}
EXPORTED int cuGraphLaunch(void* executable, void* stream) {
  if (refused_in_capture("cuGraphLaunch")) return answer();
  ++stub().graph_launches;
  for (const auto& work : *static_cast<Graph*>(executable)) enqueue_always(stream, work);
  return answer();
}
EXPORTED int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return 0;
}
EXPORTED int cuGraphExecDestroy(void* executable) {
  delete static_cast<Graph*>(executable);
  return 0;
}

EXPORTED int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return 0;
}
EXPORTED int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return 0;
}
EXPORTED int cuEventRecord(void* event, void* stream) {
  auto* own = static_cast<Event*>(event);
  own->matmuls = stub().matmuls;
  return enqueue_always(stream, [mark = own->mark, number = own->mark->record()] { mark->reach(number); });
}
EXPORTED int cuEventQuery(void* event) {
  if (answer() != 0) return answer();
  return static_cast<Event*>(event)->mark->is_reached() ? 0 : kNotReady;
}
EXPORTED int cuEventSynchronize(void* event) {
  if (refused_in_capture("cuEventSynchronize")) return answer();
  const stubs::Event mark = static_cast<Event*>(event)->mark;
  if (mark->is_reached()) return answer();
  ++stub().waits;
  if (stub().streams_are_threads) {
    mark->wait(mark->recorded());
  } else {
    work_off([&] { return mark->is_reached(); });
  }
  return answer();
}
EXPORTED int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  Stub& state = stub();
  ++state.timed;
  state.timed_matmuls = static_cast<Event*>(end)->matmuls - static_cast<Event*>(begin)->matmuls;
  *milliseconds = state.milliseconds[static_cast<std::size_t>(state.last_algorithm)];
  return 0;
}
