// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/worker_outbox.h"

namespace rocegw::worker {

port::TxPacket* WorkerOutbox::NewPacket(transport::QpContext& qp) {
  port::TxPacket* const packet = uses_.transmit.NewPacket(qp.config.device);
  if (packet == nullptr) return nullptr;
  packet->source_qpn = qp.config.qpn;
  // Only the copier reads the memory of a session that is not trusted.
  if (uses_.sessions.Of(qp).link.copier != nullptr)
    packet->outside_from = port::TxPacket::kNeverOutside;
  return packet;
}

void WorkerOutbox::Send(transport::QpContext& qp, port::TxPacket* packet) {
  WorkerSession& session = uses_.sessions.Of(qp);
  uses_.scheduler.OnSent(*session.account, packet->length + wire::kIcrcLength);
  uses_.memory.Send(session, {packet, qp.config.device, session.account});
}

port::TxPacket* WorkerOutbox::NewFrame(transport::QpContext& qp, flow::Carrier& carrier,
                                       uint32_t payload) {
  if (uses_.sessions.Of(qp).link.copier == nullptr) return NewPacket(qp);
  channel::StagedFrame& frame = uses_.staged.At(carrier).NewFrame(payload);
  frame.source_qpn = qp.config.qpn;
  return &frame;
}

void WorkerOutbox::SendFrame(transport::QpContext& qp, flow::Carrier& carrier,
                             port::TxPacket* packet) {
  WorkerSession& session = uses_.sessions.Of(qp);
  if (session.link.copier == nullptr) return Send(qp, packet);
  uses_.scheduler.OnSent(*session.account, packet->length + wire::kIcrcLength);
  uses_.memory.Send(session, uses_.staged.At(carrier).newest());
}

void WorkerOutbox::Fault(transport::QpContext& qp, const char* reason) {
  WorkerSession& session = uses_.sessions.Of(qp);
  if (!session.failed) uses_.counters.client_fault_events.Add();
  uses_.sessions.Stop(session, reason);
}

}  // namespace rocegw::worker
