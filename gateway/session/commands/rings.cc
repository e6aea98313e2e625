// SPDX-License-Identifier: Apache-2.0
// Commands for the rings that carry messages in place of the attach socket.
#include <cerrno>
#include <memory>
#include <utility>

#include "gateway/session/attach/message_rings.h"
#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/object_bytes.h"
#include "gateway/session/objects/session_costs.h"

namespace rocegw::session {

namespace {

constexpr uint64_t kDescriptorsOfRings = 2 * kDescriptorsOfPart;  // memory and eventfd

}  // namespace

void UseRings(ClientSession& session, Request&) {
  if (session.sink().has_rings()) return session.exchange().Error(EBUSY);
  // Rings only save time: a pool that lacks memory is not reported.
  const uint64_t bytes = MessageRings::MemoryBytes();
  const tenant::Pool& pool = session.pool();
  if (pool.Left(Resource::kSegmentBytes) < bytes ||
      pool.Left(Resource::kDescriptors) < kDescriptorsOfRings)
    return session.exchange().Error(ENOMEM);
  MessageRings::Charges charges;
  int error = session.quota().Take(Resource::kSegmentBytes, bytes, charges.memory);
  if (error == 0)
    error = session.quota().Take(Resource::kDescriptors, kDescriptorsOfRings, charges.descriptors);
  if (error != 0) return session.exchange().Error(error);
  auto rings = MessageRings::Create(std::move(charges));
  if (!rings.ok()) return session.exchange().Error(rings.status().error());
  rocegw_reply wake{};
  wake.type = ROCEGW_MSG_RINGS_WAKE;
  wake.length = sizeof wake;
  session.sink().Send(BytesOf(wake), (*rings)->wake_fd());
  rocegw_rings_reply reply{};
  reply.bytes = static_cast<uint32_t>(bytes);
  session.exchange().Reply(reply, (*rings)->fd());
  // Messages are counted from here on, at both ends.
  session.sink().UseRings(std::move(*rings));
}

}  // namespace rocegw::session
