// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenarios/traffic.h"

#include <algorithm>
#include <bit>
#include <optional>

namespace rocegw::sim {

Site::Site(Network& network, uint32_t number, SiteKind kind, const HostConfig& host,
           const RnicConfig& rnic) {
  if (kind == SiteKind::kGateway) {
    host_ = std::make_unique<Host>(network, number, host);
    return;
  }
  rnic_ = std::make_unique<Rnic>(network, number, rnic);
  rnic_->OnComplete([this](size_t qp, const RnicCompletion& completion) {
    if (rnic_flows_[qp]) rnic_flows_[qp](completion);
  });
}

Endpoint& Site::endpoint() {
  if (host_) return *host_;
  return *rnic_;
}

uint64_t Site::retransmitted() const {
  // Void frames on channels belong to no queue pair.
  return host_ ? std::max(host_->Count(&metrics::WorkerCounters::retransmit_packets),
                          host_->Count(&metrics::WorkerCounters::channel_resent_packets))
               : rnic_->counters().retransmitted;
}

uint64_t Site::timeouts() const {
  return host_ ? host_->Count(&metrics::WorkerCounters::timeout_events)
               : rnic_->counters().timeouts;
}

uint64_t Site::probes() const {
  return host_ ? host_->Count(&metrics::WorkerCounters::channel_probe_events) : 0;
}

uint64_t Site::cnps() const {
  return host_ ? host_->Count(&metrics::WorkerCounters::cnp_rx_packets)
               : rnic_->counters().cnps_received;
}

BulkFlow::BulkFlow(Network& network, Site& from, Site& to, const BulkConfig& config)
    : network_(network), from_(from), to_(to), config_(config) {
  Random random(network.NextSeed());
  const Psn psns[2] = {Psn(static_cast<uint32_t>(random.Below(1 << 24))),
                       Psn(static_cast<uint32_t>(random.Below(1 << 24)))};
  Site* const sites[2] = {&from, &to};
  const uint32_t qpns[2] = {from.TakeQpn(), to.TakeQpn()};
  for (size_t side = 0; side < 2; ++side) {
    Site& own = *sites[side];
    Site& peer = *sites[1 - side];
    const Psn send = psns[side];
    const Psn receive = psns[1 - side];
    if (own.kind() == SiteKind::kGateway) {
      RingOptions options;
      options.qpn = qpns[side];
      options.handle = qpns[side] - 99;
      // The receiving side posts nothing.
      options.sq_entries = side == 0 ? std::bit_ceil(config.depth) : 1;
      options.rq_entries = 1;
      options.cq_entries = side == 0 ? std::bit_ceil(config.depth) * 2 : 2;
      options.max_sge = 1;
      options.window_bytes = config.window_bytes;
      RingEnd& end = own.host()->AddQp(options);
      ConnectionOptions connection;
      connection.path_mtu = config.path_mtu;
      const Qpn to_qpn{qpns[1 - side]};
      std::optional<verbs::ChannelTarget> channel;
      if (config.channel && peer.host() != nullptr) channel = peer.host()->ChannelTo(to_qpn);
      own.host()->ConnectTo(end, peer.gid(), to_qpn, send, receive, connection, channel);
      if (side == 0) {
        end_ = &end;
        own.host()->Add(*this);
      }
    } else {
      const size_t qp = own.rnic()->Connect(
          {.own_qpn = qpns[side],
           .peer = peer.gid(),
           .peer_qpn = Qpn{qpns[1 - side]},
           .mtu = verbs::MtuBytes(config.path_mtu),
           .send_psn = send,
           .receive_psn = receive,
           .source_port = static_cast<uint16_t>(0xC000 + random.Below(0x4000))});
      own.rnic_flows_.resize(qp + 1);
      if (side == 0) {
        rnic_qp_ = qp;
        own.rnic_flows_[qp] = [this](const RnicCompletion& completion) {
          OnDone(completion.ok);
          Post();
        };
      }
    }
  }
}

void BulkFlow::Start() {
  begun_ = true;
  started_ = network_.now();
  Post();
}

void BulkFlow::OnDone(bool ok) {
  if (!ok) {
    failed_ = stopped_ = true;
    return;
  }
  bytes_ += config_.message_bytes;
  if (done()) finished_ = Earlier(finished_, network_.now());
}

void BulkFlow::Post() {
  bool rang = false;
  const uint64_t most = uint64_t{config_.depth} * config_.message_bytes;
  while (begun_ && !stopped_ && posted_ - bytes_ < most &&
         (config_.total_bytes == 0 || posted_ < config_.total_bytes)) {
    if (end_ == nullptr) {
      from_.rnic()->Post(rnic_qp_, {.operation = RnicOperation::kWrite,
                                    .length = config_.message_bytes,
                                    .remote_address = to_.base(),
                                    .rkey = to_.key()});
    } else {
      rocegw_send_wqe wqe{};
      wqe.opcode = ROCEGW_WR_RDMA_WRITE;
      wqe.flags = ROCEGW_WQE_SIGNALED;
      wqe.u.rdma.remote_address = to_.base();
      wqe.u.rdma.rkey = to_.key();
      if (!end_->PostSend(wqe, {{Host::kBase, config_.message_bytes, from_.key()}})) break;
      rang = true;
    }
    posted_ += config_.message_bytes;
  }
  if (rang) from_.host()->Ring(*end_);
}

void BulkFlow::Look(TimePoint) {
  bool any = false;
  for (const rocegw_cqe& cqe : end_->Poll()) {
    OnDone(cqe.status == 0);
    any = true;
  }
  if (any) Post();
}

}  // namespace rocegw::sim
