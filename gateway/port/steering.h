// SPDX-License-Identifier: Apache-2.0
// Assignment of packets to workers. Bits 23 to 18 of a QPN are its bucket; a table maps the 64
// buckets to workers, so that the number of workers may change between starts without changing
// QPNs. The same table becomes the program that the kernel runs on a reuseport group. A sender puts
// the destination's bucket into the UDP source port: receive offload merges packets of one source
// port without looking at QPNs, so a merged buffer belongs to one worker. Values; any thread.
#pragma once

#include <linux/filter.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

inline constexpr size_t kBuckets = 64;
inline constexpr unsigned kBucketShift = 18;

constexpr uint8_t BucketOf(Qpn qpn) {
  return static_cast<uint8_t>((qpn.value >> kBucketShift) & (kBuckets - 1));
}

// Returns the destination QPN of a BTH; kInvalidQpn if the bytes are too short.
constexpr Qpn DestinationQpn(std::span<const uint8_t> datagram) {
  if (datagram.size() < 8) return kInvalidQpn;
  return Qpn{static_cast<uint32_t>(datagram[5]) << 16 | static_cast<uint32_t>(datagram[6]) << 8 |
             datagram[7]};
}

class SteeringTable {
 public:
  // Assigns buckets to workers round-robin; `workers` is clamped to 1 to 64.
  explicit SteeringTable(size_t workers = 1);

  WorkerIndex WorkerOf(uint8_t bucket) const { return workers_[bucket & (kBuckets - 1)]; }
  WorkerIndex WorkerOf(Qpn qpn) const { return WorkerOf(BucketOf(qpn)); }
  void Assign(uint8_t bucket, WorkerIndex worker) { workers_[bucket & (kBuckets - 1)] = worker; }
  // Returns the highest worker index in the table plus one.
  size_t worker_count() const;

  // Returns classic BPF for SO_ATTACH_REUSEPORT_CBPF: the index of the socket in its group for a
  // UDP payload (socket(7)). A payload too short for a BTH goes to socket 0.
  std::vector<sock_filter> ReuseportProgram() const;

  bool operator==(const SteeringTable&) const = default;

 private:
  std::array<WorkerIndex, kBuckets> workers_{};
};

// Returns eight bits that differ between the paths of a host, for ECMP; constant for (source,
// destination, salt). The two ends of a path compute different values. The salt distinguishes
// parallel paths to one peer.
uint8_t PathHash(const wire::Gid& source, const wire::Gid& destination, uint32_t salt);

// Returns a UDP source port 0xC000 to 0xFFFF: path hash in the upper bits, the destination's bucket
// in the low six.
constexpr uint16_t SourcePort(uint8_t path_hash, Qpn destination) {
  return static_cast<uint16_t>(0xC000U | static_cast<unsigned>(path_hash) << 6 |
                               BucketOf(destination));
}
constexpr uint8_t PathHashIn(uint16_t source_port) {
  return static_cast<uint8_t>(source_port >> 6);
}

}  // namespace rocegw::port
