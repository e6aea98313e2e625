// SPDX-License-Identifier: Apache-2.0
#include "tests/support/qp/send_queues.h"

#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace rocegw::testing {
namespace {

constexpr uint64_t kSegmentLimit = uint64_t{1} << 30;

[[noreturn]] void Die(const char* what) {
  std::perror(what);
  std::abort();
}

shm::Block Allocate(shm::Segment& segment, shm::Writer writer, uint64_t bytes) {
  StatusOr<shm::Block> block = segment.Allocate(writer, bytes);
  if (!block.ok()) Die("send_queues: segment");
  return *block;
}

}  // namespace

SendQueues::SendQueues(uint32_t queues, uint32_t entries)
    : entries_(entries), segment_(kSegmentLimit), queues_(queues) {
  using shm::Writer;
  if (queues > ROCEGW_DOORBELL_BITS) std::abort();
  page_ = Allocate(segment_, Writer::kClient, sizeof(rocegw_doorbell_page));
  line_ = Allocate(segment_, Writer::kDaemon, sizeof(rocegw_worker_line));
  const uint32_t stride = rocegw_sq_stride(1);
  static_assert(sizeof(rocegw_send_wqe) + sizeof(rocegw_sge) == sizeof(Slot));
  for (Queue& queue : queues_) {
    queue.control = Allocate(segment_, Writer::kClient, sizeof(rocegw_qp_control));
    queue.status = Allocate(segment_, Writer::kDaemon, sizeof(rocegw_qp_status));
    queue.slots = Allocate(segment_, Writer::kClient, uint64_t{entries} * stride);
    queue.view = shm::WorkQueue(&queue.control.As<rocegw_qp_control>()->sq_producer,
                                &queue.status.As<rocegw_qp_status>()->sq_released,
                                queue.slots.address, entries, stride);
  }
}

uint32_t SendQueues::Waiting(uint32_t queue) const {
  const Queue& q = queues_[queue];
  return shm::LoadAcquire(&q.control.As<rocegw_qp_control>()->sq_producer) - q.view.fetched();
}

SendQueues::ClientMapping::ClientMapping(const SendQueues& queues) : rings_(queues.count()) {
  for (size_t i = 0; i < queues.segment_.chunk_count(); ++i) {
    const shm::Chunk& chunk = queues.segment_.chunk(i);
    const int protection =
        chunk.writer() == shm::Writer::kClient ? PROT_READ | PROT_WRITE : PROT_READ;
    void* base = mmap(nullptr, chunk.size(), protection, MAP_SHARED | MAP_POPULATE, chunk.fd(), 0);
    if (base == MAP_FAILED) Die("send_queues: mmap");
    views_.push_back({static_cast<uint8_t*>(base), chunk.size()});
  }
  const client::LocationResolver resolver{
      [](void* views, const rocegw_location& location, uint64_t) -> void* {
        return (*static_cast<std::vector<View>*>(views))[location.chunk].base + location.offset;
      },
      &views_};
  client::QpMapping mapping{};
  mapping.line = static_cast<const rocegw_worker_line*>(
      resolver(queues.line_.location(), sizeof(rocegw_worker_line)));
  mapping.wake_fd = -1;
  mapping.keys = &keys_;
  mapping.qp_type = IBV_QPT_RC;
  mapping.max_message = 1u << 30;
  mapping.signal_all = true;
  for (uint32_t i = 0; i < queues.count(); ++i) {
    const Queue& queue = queues.queues_[i];
    rocegw_qp_reply reply{};
    reply.qpn = reply.handle = i + 1;
    reply.sq_entries = queues.entries_;
    reply.max_send_sge = 1;
    reply.control = queue.control.location();
    reply.status = queue.status.location();
    reply.sq = queue.slots.location();
    reply.doorbell = queues.page_.location();
    reply.doorbell_bit = i;
    if (client::MapQpRings(reply, resolver, mapping, &rings_[i]) != 0) std::abort();
    rings_[i].send.state = IBV_QPS_RTS;
  }
}

SendQueues::ClientMapping::~ClientMapping() {
  for (const View& view : views_) munmap(view.base, view.size);
  keys_.Clear();
}

}  // namespace rocegw::testing
