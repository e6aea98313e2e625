// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/incoming_write.h"

#include "gateway/verbs/work_request.h"

namespace rocegw::transport {
namespace {

const verbs::RegionConfig* RegionFor(const QpContext& qp, uint32_t rkey, uint64_t address,
                                     uint64_t length) {
  return qp.regions->Find(MemoryKey{rkey}, qp.config.session, qp.config.pd,
                          verbs::kAccessRemoteWrite, address, length);
}

}  // namespace

IncomingWrite::Refusal IncomingWrite::Admit(const QpContext& qp, const wire::RxPacket& packet) {
  if (packet.traits->starts_message()) {
    const wire::Reth& reth = packet.headers.reth;
    if ((qp.attributes.access & verbs::kAccessRemoteWrite) == 0 ||
        reth.length > verbs::kMaxMessage) {
      return Refusal::kInvalid;
    }
    if (reth.length != 0 && RegionFor(qp, reth.rkey, reth.address, reth.length) == nullptr)
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
  const verbs::RegionConfig* const region = RegionFor(qp, rkey_, address_, length);
  if (region == nullptr) return Refusal::kAccess;
  const uint64_t in_region = address_ - region->iova;
  const memory::MemoryOp op{.kind = memory::OpKind::kWrite,
                            .publish = packet.traits->ends_message(),
                            .length = length,
                            .address = region->address + in_region,
                            .direct = region->DirectAt(in_region, length),
                            .buffer = const_cast<uint8_t*>(packet.payload.data())};
  outbox.Access(qp, op,
                {qp.handle, ++qp.tickets_issued, AccessPurpose::kWrite, packet.headers.bth.psn, 0},
                nullptr);
  address_ += length;
  left_ -= length;
  qp.bytes_received += length;
  return Refusal::kNone;
}

}  // namespace rocegw::transport
