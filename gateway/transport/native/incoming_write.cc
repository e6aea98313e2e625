// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/native/incoming_write.h"

#include "gateway/verbs/work_request.h"

namespace rocegw::transport {
namespace {

std::optional<verbs::RemotePlace> PlaceFor(const QpContext& qp, uint32_t rkey, uint64_t address,
                                           uint64_t length) {
  return qp.worker->regions.FindRemote(qp.user(), MemoryKey{rkey}, verbs::kAccessRemoteWrite,
                                       address, length);
}

}  // namespace

IncomingWrite::Refusal IncomingWrite::Admit(const QpContext& qp, const wire::RxPacket& packet) {
  if (packet.traits->starts_message()) {
    const wire::Reth& reth = packet.headers.reth;
    if ((qp.attributes.access & verbs::kAccessRemoteWrite) == 0 ||
        reth.length > verbs::kMaxMessage) {
      return Refusal::kInvalid;
    }
    if (reth.length != 0 && !PlaceFor(qp, reth.rkey, reth.address, reth.length).has_value())
      return Refusal::kAccess;
    address_ = reth.address;
    rkey_ = reth.rkey;
    left_ = length_ = reth.length;
  }
  const size_t bytes = packet.payload.size();
  const bool fits = packet.traits->ends_message() ? bytes == left_ : bytes < left_;
  return fits ? Refusal::kNone : Refusal::kInvalid;
}

IncomingWrite::Refusal IncomingWrite::Place(QpContext& qp, Outbox& outbox,
                                            const wire::RxPacket& packet) {
  const auto length = static_cast<uint32_t>(packet.payload.size());
  if (length == 0) return Refusal::kNone;
  const std::optional<verbs::RemotePlace> place = PlaceFor(qp, rkey_, address_, length);
  if (!place.has_value()) return Refusal::kAccess;
  const memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                            .publish = packet.traits->ends_message(),
                            .length = length,
                            .address = place->address,
                            .direct = place->direct,
                            .buffer = const_cast<uint8_t*>(packet.payload.data())};
  outbox.Access(qp, op,
                {qp.handle, ++qp.tickets_issued, AccessPurpose::kWrite, packet.headers.bth.psn, 0},
                nullptr);
  address_ += length;
  left_ -= length;
  qp.CountBytesReceived(length);
  return Refusal::kNone;
}

}  // namespace rocegw::transport
