// SPDX-License-Identifier: Apache-2.0
// The calls of rocegw_memory_map.h.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "gateway/far/session/api/rocegw_memory_map.h"
#include "gateway/far/session/api/session_handle.h"
#include "gateway/far/window/bus_errors.h"
#include "gateway/far/window/window.h"

using rocegw::far::CopyStatistics;
using rocegw::far::Explain;
using rocegw::far::Window;

struct rocegw_memory_map {
  Window window;
};

int rocegw_memory_map_open(rocegw_memory_session* session, uint64_t offset, uint64_t size,
                           uint64_t resident_bytes, rocegw_memory_map** window, char* why,
                           size_t why_size) {
  const rocegw_memory_map_options options{resident_bytes, ROCEGW_MEMORY_MAP_HANDLER_THREAD};
  return rocegw_memory_map_open_with(session, offset, size, &options, sizeof options, window, why,
                                     why_size);
}

int rocegw_memory_map_open_with(rocegw_memory_session* session, uint64_t offset, uint64_t size,
                                const rocegw_memory_map_options* given, size_t given_size,
                                rocegw_memory_map** window, char* why, size_t why_size) {
  rocegw_memory_map_options options{};
  std::memcpy(&options, given, std::min(given_size, sizeof options));
  constexpr uint64_t kFewestResident = 1 << 20;
  auto& dispatcher = session->session->dispatcher();
  rocegw::Status status;
  if (offset % Window::kPage != 0 || size % Window::kPage != 0 || size == 0 ||
      offset > dispatcher.size() || size > dispatcher.size() - offset) {
    status = {EINVAL, "offset and size are multiples of 4096, within the space"};
  } else if (options.resident_bytes < kFewestResident) {
    status = {EINVAL, "resident_bytes: at least 1 MiB"};
  } else if (options.faults > ROCEGW_MEMORY_MAP_FAULTING_THREAD) {
    status = {EINVAL, "faults: none of enum rocegw_memory_map_faults"};
  } else {
    const auto faults = options.faults == ROCEGW_MEMORY_MAP_FAULTING_THREAD
                            ? Window::Faults::kHere
                            : Window::Faults::kByHandler;
    std::unique_ptr<rocegw_memory_map> opened(new rocegw_memory_map{
        {dispatcher, offset, size, options.resident_bytes, Window::Content::kStored, faults}});
    status = opened->window.Open();
    if (status.ok()) *window = opened.release();
  }
  return status.ok() ? 0 : Explain(status, why, why_size);
}

int rocegw_memory_map_handle_fault(const void* siginfo, const void* context) {
  return rocegw::far::BusErrors::Handle(siginfo, context) ? 1 : 0;
}

void* rocegw_memory_map_address(rocegw_memory_map* window) { return window->window.address(); }

int rocegw_memory_map_sync(rocegw_memory_map* window) { return window->window.Synchronize(); }

int rocegw_memory_map_close(rocegw_memory_map* window) {
  const int result = window->window.Synchronize();
  delete window;
  return result;
}

void rocegw_memory_map_get_statistics(rocegw_memory_map* window,
                                      rocegw_memory_map_statistics* statistics,
                                      size_t statistics_size) {
  CopyStatistics(window->window.Statistics(), statistics, statistics_size);
}
