// SPDX-License-Identifier: Apache-2.0
// Shared memory of a session, charged to its pool: blocks for the client's objects, in chunks that
// are announced to the client before it may use them. Owner: the session, control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/attach/message_socket.h"
#include "gateway/session/attach/peer.h"
#include "gateway/shm/segment.h"
#include "gateway/tenant/charge.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::session {

struct Services;

class SessionSegment {
 public:
  // All arguments outlive the object. `source`: reserve of chunks; nullptr: none.
  SessionSegment(Services& services, tenant::Pool& pool, SessionId id, const Peer& peer,
                 shm::ChunkSource* source);

  shm::Segment& segment() { return segment_; }
  const shm::Segment& segment() const { return segment_; }
  void Free(shm::Block& block) { segment_.Free(block); }

  // Allocates a block, charged to the pool. A refusal is reported; ENOMEM.
  StatusOr<shm::Block> Allocate(shm::Writer writer, uint64_t bytes);
  // Announces the chunks that the client does not know yet.
  void AnnounceTo(MessageSink& sink);
  // Returns all charges to the pool.
  void Release();

  // Hand-over to a gateway that takes over (hand_over/session_state.cc): the memory, with the
  // descriptor of each chunk from `take`, and later the charge for its bytes.
  void HandOver(hand_over::StateStream& state, const std::function<UniqueFd(uint32_t chunk)>& take);
  void HandOverCharge(hand_over::StateStream& state);

 private:
  // Reports the event for a block that was not granted; it names the limit.
  void TellNoMemory(uint64_t bytes, const Status& refused);
  void Charge();

  Services& services_;
  tenant::Pool& pool_;
  const SessionId id_;
  const Peer& peer_;
  shm::Segment segment_;
  uint64_t charged_ = 0;
  uint64_t taken_over_ = 0;  // part of it that the reserve had paid for
  std::vector<tenant::Charge> chunk_descriptors_;
  size_t announced_ = 0;
};

}  // namespace rocegw::session
