// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/placement.h"

#include "gateway/verbs/work_request.h"

namespace rocegw::transport {

using wire::NakCode;

std::optional<NakCode> CheckAtomicWrite(const QpContext& qp, const PlacementRequest& request,
                                        verbs::RemotePlace& place) {
  if (!qp.config.placement || (qp.attributes.access & verbs::kAccessRemoteWrite) == 0 ||
      request.length != 8 || (request.address & 7) != 0) {
    return NakCode::kInvalidRequest;
  }
  const std::optional<verbs::RemotePlace> found =
      qp.worker->regions.FindRemote(qp.user(), MemoryKey{request.rkey}, verbs::kAccessRemoteWrite,
                                    request.address, request.length);
  if (!found.has_value()) return NakCode::kRemoteAccess;
  place = *found;
  return std::nullopt;
}

void StoreAtomically(QpContext& qp, Outbox& outbox, const verbs::RemotePlace& place, uint64_t value,
                     AccessTag tag) {
  const memory::MemoryOp op{.kind = memory::OpKind::kAtomicStore,
                            .length = sizeof value,
                            .address = place.address,
                            .direct = place.direct,
                            .swap_or_add = value};
  tag.qp = qp.handle;
  tag.ticket = ++qp.tickets_issued;
  outbox.Access(qp, op, tag, nullptr);
}

std::optional<NakCode> CheckFlush(const QpContext& qp, const PlacementRequest& request) {
  const uint32_t type = request.feth & wire::kFlushTypeMask;
  const uint32_t level = request.feth & wire::kFlushLevelMask;
  uint32_t access = 0;
  if ((type & wire::kFlushGlobal) != 0) access |= verbs::kAccessFlushGlobal;
  if ((type & wire::kFlushPersistent) != 0) access |= verbs::kAccessFlushPersistent;
  const bool known = (type & ~(wire::kFlushGlobal | wire::kFlushPersistent)) == 0 && access != 0 &&
                     (level == wire::kFlushRange || level == wire::kFlushRegion);
  if (!qp.config.placement || !known || (qp.attributes.access & access) != access ||
      request.length > verbs::kMaxMessage) {
    return NakCode::kInvalidRequest;
  }
  const MemoryKey key{request.rkey};
  const bool granted =
      level == wire::kFlushRegion
          ? qp.worker->regions.GrantsWhole(qp.user(), key, access)
          : qp.worker->regions.FindRemote(qp.user(), key, access, request.address, request.length)
                .has_value();
  if (!granted) return NakCode::kRemoteAccess;
  return std::nullopt;
}

}  // namespace rocegw::transport
