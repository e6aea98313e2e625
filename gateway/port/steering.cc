// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/steering.h"

#include <algorithm>

namespace rocegw::port {
namespace {

constexpr uint32_t kBucketByte = 5;  // first byte of the destination QPN in a BTH

sock_filter Statement(uint16_t code, uint32_t k) { return {code, 0, 0, k}; }

// Emits a binary search over the buckets, so that at most six comparisons run per packet. Forward
// jumps of classic BPF reach 255 instructions; the whole tree has at most 127.
void EmitRange(const SteeringTable& table, size_t low, size_t high, std::vector<sock_filter>& out) {
  const WorkerIndex first = table.WorkerOf(static_cast<uint8_t>(low));
  size_t same = low + 1;
  while (same < high && table.WorkerOf(static_cast<uint8_t>(same)) == first) ++same;
  if (same == high) {
    out.push_back(Statement(BPF_RET | BPF_K, first));
    return;
  }
  const size_t middle = low + (high - low) / 2;
  const size_t branch = out.size();
  out.push_back(Statement(BPF_JMP | BPF_JGE | BPF_K, static_cast<uint32_t>(middle)));
  EmitRange(table, low, middle, out);
  out[branch].jt = static_cast<uint8_t>(out.size() - branch - 1);
  EmitRange(table, middle, high, out);
}

}  // namespace

SteeringTable::SteeringTable(size_t workers) {
  const size_t count = std::clamp<size_t>(workers, 1, kBuckets);
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    workers_[bucket] = static_cast<WorkerIndex>(bucket % count);
  }
}

size_t SteeringTable::worker_count() const {
  return size_t{*std::max_element(workers_.begin(), workers_.end())} + 1;
}

std::vector<sock_filter> SteeringTable::ReuseportProgram() const {
  std::vector<sock_filter> program;
  program.push_back(Statement(BPF_LD | BPF_B | BPF_ABS, kBucketByte));
  program.push_back(Statement(BPF_ALU | BPF_RSH | BPF_K, kBucketShift - 16));
  EmitRange(*this, 0, kBuckets, program);
  return program;
}

uint8_t PathHash(const wire::Gid& source, const wire::Gid& destination, uint32_t salt) {
  uint64_t hash = 0xCBF29CE484222325U ^ salt;  // FNV-1a
  for (const wire::Gid* gid : {&source, &destination}) {
    for (const uint8_t byte : gid->bytes) hash = (hash ^ byte) * 0x100000001B3U;
  }
  hash ^= hash >> 32;
  hash ^= hash >> 16;
  return static_cast<uint8_t>(hash ^ hash >> 8);
}

}  // namespace rocegw::port
