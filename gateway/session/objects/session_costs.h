// SPDX-License-Identifier: Apache-2.0
// Descriptors and heap of the daemon that parts of a session cost, in the units of
// tenant::Resource. Costs that every object of a kind has in common are in tenant/heap_cost.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::session {

// The connection, the process, its memory, and a descriptor that comes with a request; per worker
// the wake descriptor and its duplicate that waits to be sent.
constexpr uint64_t DescriptorsOfSession(size_t workers) { return 8 + 2 * uint64_t{workers}; }
// An event channel, a chunk of shared memory or a remapped region: the daemon's descriptor and the
// duplicate that waits to be sent.
inline constexpr uint64_t kDescriptorsOfPart = 2;

// Per worker: bytes that a copier has in hand, bytes that wait for it, and one burst
// (worker/worker_memory.cc).
constexpr uint64_t HeapOfCopier(size_t workers) { return uint64_t{workers} * (uint64_t{5} << 19); }
// Mappings and rows of a remapped region.
inline constexpr uint64_t kHeapOfRegion = 2048;

}  // namespace rocegw::session
