// SPDX-License-Identifier: Apache-2.0
// Program of a benchmark that posts and polls by the client library's own code, over the rings of a
// RingEnd. One thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdlib>

#include "gateway/client/rings/map_rings.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {

// Owns the library's rings of one queue pair of side 0; its registered memory is the side's.
class LibraryProgram {
 public:
  LibraryProgram(GatewayPair& gateways, RingEnd& end) {
    const verbs::QpConfig qp = end.Qp();
    client::RegisteredRange range{gateways.Base(0), gateways.memory(0).size(), gateways.Base(0), 1,
                                  IBV_ACCESS_LOCAL_WRITE};
    if (keys_.Insert(GatewayPair::kKey[0], range) != 0) std::abort();
    rings_.handle = qp.qp_handle;
    rings_.qpn = qp.qpn.value;
    client::SendRing& send = rings_.send;
    send.mask = qp.sq_entries - 1;
    send.stride = qp.sq_stride;
    send.slots = const_cast<uint8_t*>(qp.sq);
    send.payload = const_cast<uint8_t*>(qp.sq_payload);
    send.payload_stride = qp.sq_payload_stride;
    send.max_sge = qp.max_send_sge;
    send.max_inline = qp.sq_payload_stride;
    send.max_message = 1u << 30;
    send.control = qp.control;
    send.status = qp.status;
    send.bell = {gateways.page(0, 0), gateways.line(0, 0), -1, nullptr, qp.doorbell_bit};
    send.keys = &keys_;
    send.pd = 1;
    send.state = IBV_QPS_RTS;
    send.qp_type = IBV_QPT_RC;
    const verbs::CqConfig cq = end.Cq();
    if (cq_.Init(cq.control, cq.ring, cq.entries, 1) != 0 || cq_.Add(&rings_, true, true) != 0)
      std::abort();
    cq_.set_polling({}, false);
  }
  ~LibraryProgram() {
    cq_.Destroy();
    keys_.Clear();
  }

  int Post(ibv_send_wr* wr) {
    ibv_send_wr* bad;
    return client::PostSend(rings_.send, wr, &bad);
  }
  int Poll(int count, ibv_wc* wc) { return cq_.Poll(count, wc); }

 private:
  client::KeyTable keys_{};
  client::QpRings rings_{};
  client::CompletionRings cq_{};
};

}  // namespace rocegw::testing
