// SPDX-License-Identifier: Apache-2.0
// Hand-over of a virtual host's objects to fresh ones (gateway/hand_over).
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "tests/sim/host/host.h"
#include "tests/support/qp/carrier_addresses.h"

namespace rocegw::sim {
namespace {

using hand_over::StateStream;
using hand_over::StateVersions;
using transport::QueuePair;

std::unique_ptr<QueuePair> Fresh(const transport::QpContext& old, const flow::CcConfig& cc) {
  const verbs::QpConfig config{old.config, old.payload, old.rare};
  return config.type == verbs::QpType::kEndpoint ? transport::MakeEndpoint(config)
                                                 : transport::MakeRcQueuePair(config, cc);
}

bool IsHandedOver(const transport::QpContext& context) {
  return context.tickets_issued == context.tickets_done;
}

// Sets what a worker sets when it links a queue pair.
void LinkAs(const transport::QpContext& old, transport::QpContext& fresh) {
  fresh.handle = old.handle;
  fresh.send_cq = old.send_cq;
  fresh.recv_cq = old.recv_cq;
  fresh.TakeReceivesFrom(old.srq);
  fresh.worker = old.worker;
  fresh.owner = old.owner;
  fresh.peers = old.peers;
}

}  // namespace

void Host::Exchange(std::unique_ptr<QueuePair>& queue_pair, HandedOver& result) {
  if (!IsHandedOver(queue_pair->context())) {
    ++result.left;
    return;
  }
  std::vector<uint8_t> bytes;
  const StateVersions versions;
  StateStream out(bytes, network_.now(), versions);
  testing::CarrierAddresses names;
  queue_pair->HandOver(out, names);
  std::unique_ptr<QueuePair> fresh = Fresh(queue_pair->context(), Congestion());
  LinkAs(queue_pair->context(), fresh->context());
  StateStream in(bytes, network_.now());
  fresh->HandOver(in, names);
  if (!out.ok()) result.failure = out.failure();
  if (!in.ok()) result.failure = in.failure();
  if (in.ok() && !in.at_end()) result.failure = "state is longer than what was read";
  // The new users of the channels have come before the old ones leave.
  queue_pair = std::move(fresh);
  ++result.objects;
  result.bytes += bytes.size();
}

Host::HandedOver Host::HandOver() {
  HandedOver result;
  for (const auto& one : workers_) {
    one->worker->ForEachQueuePair(
        [&](std::unique_ptr<QueuePair>& queue_pair) { Exchange(queue_pair, result); });
  }
  return result;
}

flow::CcConfig Host::Congestion() const {
  flow::CcConfig congestion = config_.congestion;
  if (congestion.profile == nullptr) congestion.profile = &cc_profile_;
  return congestion;
}

}  // namespace rocegw::sim
