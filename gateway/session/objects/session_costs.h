// SPDX-License-Identifier: Apache-2.0
// Descriptors and heap of the daemon that parts of a session cost, in the units of
// tenant::Resource. Costs common to all objects of a kind are in tenant/heap_cost.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/channel/staged_carrier.h"
#include "gateway/transport/endpoint/orphan_messages.h"
#include "gateway/transport/endpoint/peer.h"

namespace rocegw::session {

// Descriptors of a session: the connection, the process, its memory, and for one that comes with a
// request itself, a duplicate of the connection, and two ends of a socket pair; per worker the wake
// descriptor and its duplicate that waits to be sent.
constexpr uint64_t DescriptorsOfSession(size_t workers) { return 8 + 2 * uint64_t{workers}; }
// Descriptors of an event channel, a chunk of shared memory or a remapped region: the daemon's own
// and the duplicate that waits to be sent.
inline constexpr uint64_t kDescriptorsOfPart = 2;

// Limit of a worker's channels: as many as the peers' workers that it may talk to.
inline constexpr size_t kChannelsPerWorker = 1024;

// Heap of a copier per worker: operations in progress, operations that wait, and one burst
// (worker/memory/memory_executor.cc), frames on channels, and a carrier for each channel
// (channel/staged_carrier.h).
constexpr uint64_t HeapOfCopier(size_t workers) {
  constexpr uint64_t kOperations = uint64_t{7} << 19;
  constexpr uint64_t kCarriers = kChannelsPerWorker * channel::StagedCarrier::kHeapOfCarrier;
  return uint64_t{workers} * (kOperations + channel::StagedCarrier::kMostOfSession + kCarriers);
}
// Heap of a peer of endpoints: the control thread's row and its copy at each worker.
constexpr uint64_t HeapOfPeer(size_t workers) {
  return 512 + uint64_t{workers} * (sizeof(transport::Peer) + 64);
}
// Heap of a group of endpoints besides that of the queue pair as which it counts.
inline constexpr uint64_t kHeapOfGroup = transport::OrphanMessages::kMostHeapBytes;
// Heap of a remapped region: mappings and rows.
inline constexpr uint64_t kHeapOfRegion = 2048;
// Cost of a GPU for a session that has registered memory of it: files of the driver for its
// context, and the context's memory in this process. The drivers say neither, and no machine of
// this project has a GPU: both are assumptions with a margin.
inline constexpr uint64_t kDescriptorsOfDevice = 32;
inline constexpr uint64_t kHeapOfDeviceContext = uint64_t{64} << 20;
// A mapping of pages of 4 KiB needs an entry of 8 bytes for each in the gateway's page tables. The
// limit of remapped bytes bounds them for moved pages; a dma-buf is charged for them as heap.
inline constexpr uint64_t kBytesPerByteOfPageTables = 512;

}  // namespace rocegw::session
