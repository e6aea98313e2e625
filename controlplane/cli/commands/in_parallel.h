// SPDX-License-Identifier: Apache-2.0
// Parallel execution of work items on a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace rocegw::cli {

// Limit of concurrent calls of rocegwctl to a controller.
inline constexpr size_t kMostAtATime = 8;

// Runs work() on `threads` threads; returns when all have finished.
template <typename Work>
void OnThreads(size_t threads, const Work& work) {
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

// Runs work(i) once for each i below count, started in order.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  OnThreads(std::min(count, kMostAtATime), [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  });
}

}  // namespace rocegw::cli
