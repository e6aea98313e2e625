// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/storage_io/load.h"

#include <algorithm>
#include <cstdio>

#include "tests/interop/storage_io/blocks.h"

namespace rocegw::storage_io {

Load::Load(const Options& options)
    : options_(options),
      end_(start_ + std::chrono::milliseconds(options.milliseconds)),
      memory_(size_t{options.depth} * options.block_bytes),
      slots_(options.depth) {
  latencies_us_.reserve(1 << 20);
}

Command Load::Begin(uint32_t slot) {
  Slot& state = slots_[slot];
  const bool write = options_.writes == 100 || random_() % 100 < options_.writes;
  state.command = {};
  state.command.slot = slot;
  state.command.operation = write ? Operation::kWrite : Operation::kRead;
  state.command.block = static_cast<uint32_t>(random_() % BlocksOfVolume(options_.block_bytes));
  state.command.bytes = options_.block_bytes;
  if (write && options_.verify) {
    FillBlock(state.command.block, random_(), BlockOf(slot), options_.block_bytes);
  }
  state.begun = Clock::now();
  return state.command;
}

void Load::End(uint32_t slot, bool failed) {
  const Slot& state = slots_[slot];
  const auto took =
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - state.begun);
  latencies_us_.push_back(static_cast<uint32_t>(took.count()));
  ++done_;
  const bool read = state.command.operation == Operation::kRead;
  if (failed || (read && options_.verify &&
                 !IsWhole(state.command.block, BlockOf(slot), options_.block_bytes))) {
    ++wrong_;
  }
}

bool Load::Report() const {
  const std::chrono::duration<double> span = Clock::now() - start_;
  std::vector<uint32_t> sorted = latencies_us_;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (const uint32_t latency : sorted) sum += latency;
  const auto at = [&](double share) {
    return sorted.empty()
               ? 0U
               : sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  std::printf(
      "requests %llu per_second %.0f mean_us %.1f p50_us %u p99_us %u abandoned %llu wrong %llu\n",
      static_cast<unsigned long long>(done_), static_cast<double>(done_) / span.count(),
      sorted.empty() ? 0 : sum / static_cast<double>(sorted.size()), at(0.5), at(0.99),
      static_cast<unsigned long long>(abandoned_), static_cast<unsigned long long>(wrong_));
  return wrong_ == 0;
}

}  // namespace rocegw::storage_io
