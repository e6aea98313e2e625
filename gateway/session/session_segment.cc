// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/session_segment.h"

#include <string>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/invariant.h"
#include "gateway/session/object_bytes.h"
#include "gateway/session/objects/session_costs.h"
#include "gateway/session/services.h"

namespace rocegw::session {
namespace {

// A gateway inside of a program is not replaced.
shm::Sealing SealingIn(const Services& services) {
  return services.options.memory_way == MemoryWay::kOwn ? shm::Sealing::kForever
                                                        : shm::Sealing::kForSuccessor;
}

}  // namespace

SessionSegment::SessionSegment(Services& services, tenant::Pool& pool, SessionId id,
                               const Peer& peer, shm::ChunkSource* source)
    : services_(services),
      pool_(pool),
      id_(id),
      peer_(peer),
      segment_(0, source, SealingIn(services)) {
  // Allocated early, so that objects from a reserve need no allocation later.
  if (source != nullptr) chunk_descriptors_.reserve(shm::Segment::kChunksAhead);
}

StatusOr<shm::Block> SessionSegment::Allocate(shm::Writer writer, uint64_t bytes) {
  // A block that needs a new chunk needs descriptors for the chunk.
  const bool may_grow = pool_.Left(Resource::kDescriptors) >= kDescriptorsOfPart;
  const uint64_t left = may_grow ? pool_.Left(Resource::kSegmentBytes) : 0;
  segment_.SetMaxBytes(left > UINT64_MAX - segment_.bytes() ? UINT64_MAX : segment_.bytes() + left);
  auto block = segment_.Allocate(writer, bytes);
  if (!block.ok()) TellNoMemory(bytes, block.status());
  Charge();
  return block;
}

void SessionSegment::TellNoMemory(uint64_t bytes, const Status& refused) {
  auto refusal = pool_.Check(Resource::kSegmentBytes, shm::Segment::LeastChunk(bytes));
  if (!refusal) refusal = pool_.Check(Resource::kDescriptors, kDescriptorsOfPart);
  if (refusal) return services_.rules.TellRefused(pool_, *refusal);
  // The system refused.
  services_.reports.Tell("QUOTA_EXCEEDED", pool_.name(), "shared memory",
                         pool_.name() + ": session " + std::to_string(id_.value) + " (" +
                             peer_.comm + ", pid " + std::to_string(peer_.pid) +
                             ") gets no more shared memory: " + refused.text());
}

void SessionSegment::Charge() {
  const uint64_t taken_over = segment_.bytes_of_source() - taken_over_;
  taken_over_ += taken_over;
  charged_ += taken_over;
  const uint64_t grown = segment_.bytes() - charged_;
  charged_ += grown;
  // The amount fits: the segment was bounded by what the pool had left.
  (void)ROCEGW_INVARIANT(
      grown == 0 || services_.rules.Take(pool_, Resource::kSegmentBytes, grown) == 0,
      "segment-within-pool");
  // A chunk from the reserve is used even without free descriptors; the reserve bounds their
  // number.
  while (chunk_descriptors_.size() < segment_.chunk_count()) {
    chunk_descriptors_.emplace_back();
    if (!pool_.Take(Resource::kDescriptors, kDescriptorsOfPart))
      chunk_descriptors_.back() = {pool_, Resource::kDescriptors, kDescriptorsOfPart};
  }
}

void SessionSegment::AnnounceTo(MessageSink& sink) {
  for (; announced_ < segment_.chunk_count(); ++announced_) {
    const shm::Chunk& chunk = segment_.chunk(announced_);
    rocegw_chunk_announcement announcement{};
    announcement.header.type = ROCEGW_MSG_CHUNK;
    announcement.header.length = sizeof announcement;
    announcement.chunk = static_cast<uint32_t>(announced_);
    announcement.read_only = chunk.writer() == shm::Writer::kDaemon ? 1 : 0;
    announcement.size = chunk.size();
    sink.Send(BytesOf(announcement), chunk.client_fd());
    segment_.Announced(announced_);
  }
}

void SessionSegment::Release() {
  pool_.Give(Resource::kSegmentBytes, charged_);
  services_.heap.Destroyed(1);
  charged_ = 0;
  chunk_descriptors_.clear();
}

}  // namespace rocegw::session
