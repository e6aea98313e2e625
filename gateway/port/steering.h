// SPDX-License-Identifier: Apache-2.0
// Which worker a packet belongs to. Bits 23 to 18 of a QPN are its bucket; a table maps the 64
// buckets to workers, so that the number of workers may change from one start to the next without
// touching QPNs. The same table becomes the program that the kernel runs on a reuseport group.
// A sender puts the destination's bucket into the UDP source port: receive offload merges packets
// of one source port and looks at no QPN, and so a merged buffer belongs to one worker.
// Values; no owner, any thread.
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

// The destination QPN in a BTH; kInvalidQpn when the bytes are too short to have one.
constexpr Qpn DestinationQpn(std::span<const uint8_t> datagram) {
  if (datagram.size() < 8) return kInvalidQpn;
  return Qpn{static_cast<uint32_t>(datagram[5]) << 16 | static_cast<uint32_t>(datagram[6]) << 8 |
             datagram[7]};
}

class SteeringTable {
 public:
  // Buckets go round the workers; workers must be 1 to 64, others are brought into that range.
  explicit SteeringTable(size_t workers = 1);

  WorkerIndex WorkerOf(uint8_t bucket) const { return workers_[bucket & (kBuckets - 1)]; }
  WorkerIndex WorkerOf(Qpn qpn) const { return WorkerOf(BucketOf(qpn)); }
  void Assign(uint8_t bucket, WorkerIndex worker) { workers_[bucket & (kBuckets - 1)] = worker; }
  // One more than the highest worker in the table.
  size_t worker_count() const;

  // Classic BPF for SO_ATTACH_REUSEPORT_CBPF: yields the index of the socket in its group for a UDP
  // payload (socket(7)). A payload too short for a BTH goes to socket 0.
  std::vector<sock_filter> ReuseportProgram() const;

  bool operator==(const SteeringTable&) const = default;

 private:
  std::array<WorkerIndex, kBuckets> workers_{};
};

// Eight bits that differ between paths of a host, for ECMP: same for both ends of nothing, constant
// for (source, destination, salt). The salt tells parallel paths to one peer apart.
uint8_t PathHash(const wire::Gid& source, const wire::Gid& destination, uint32_t salt);

// UDP source port 0xC000 to 0xFFFF: path hash above, destination's bucket in the low six bits.
constexpr uint16_t SourcePort(uint8_t path_hash, Qpn destination) {
  return static_cast<uint16_t>(0xC000U | static_cast<unsigned>(path_hash) << 6 |
                               BucketOf(destination));
}
constexpr uint8_t PathHashIn(uint16_t source_port) {
  return static_cast<uint8_t>(source_port >> 6);
}

}  // namespace rocegw::port
