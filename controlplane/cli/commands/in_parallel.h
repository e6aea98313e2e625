// SPDX-License-Identifier: Apache-2.0
// Work on several things at a time, each on one of a few threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace rocegw::cli {

// How many calls to a controller rocegwctl has under way at most.
inline constexpr size_t kMostAtATime = 8;

// work(), on `threads` threads; returns when all are through.
template <typename Work>
void OnThreads(size_t threads, const Work& work) {
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

// work(i) once for each i below count, in order of their beginning.
template <typename Work>
void InParallel(size_t count, const Work& work) {
  std::atomic<size_t> next{0};
  OnThreads(std::min(count, kMostAtATime), [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  });
}

}  // namespace rocegw::cli
