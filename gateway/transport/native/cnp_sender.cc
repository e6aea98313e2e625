// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/native/cnp_sender.h"

#include "gateway/transport/native/native_packet.h"

namespace rocegw::transport {

void CnpSender::OnPacket(QpContext& qp, Outbox& outbox, const flow::CcConfig& cc,
                         const wire::RxPacket& packet, TimePoint now) {
  const bool data =
      packet.traits->is_request || packet.traits->operation == wire::Operation::kReadResponse;
  if (!data || (packet.meta.traffic_class & wire::kEcnMask) != wire::kEcnCe) return;
  const flow::CcProfile& profile = ProfileOf(cc);
  if (!profile.send_cnps || now < next_) return;
  port::TxPacket* const notice = outbox.NewPacket(qp);
  if (notice == nullptr) return;
  BuildCnp(qp, profile.cnp_traffic_class, *notice);
  outbox.Send(qp, notice);
  next_ = now + profile.cnp_interval;
  qp.worker->counters.cnp_tx_packets.Add();
}

}  // namespace rocegw::transport
