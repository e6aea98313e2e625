// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/network.h"

#include <cstring>
#include <utility>

#include "gateway/port/frame.h"

namespace rocegw::sim {

size_t Switch::AddPort(Link& out) {
  ports_.push_back(&out);
  return ports_.size() - 1;
}

void Switch::Route(uint32_t host, size_t port) {
  if (routes_.size() <= host) routes_.resize(host + 1);
  routes_[host].push_back(static_cast<uint16_t>(port));
}

void Switch::Arrive(Packet* packet) {
  const uint32_t host = HostOf(packet->meta.destination);
  const std::vector<uint16_t>& own =
      host < routes_.size() && !routes_[host].empty() ? routes_[host] : others_;
  if (own.empty()) {
    ++unroutable_;
    network_.store().Put(packet);
    return;
  }
  size_t way = 0;
  if (own.size() > 1) {
    const uint64_t flow = uint64_t{HostOf(packet->meta.source)} << 40 | uint64_t{host} << 16 |
                          packet->meta.source_port;
    way = Mix(flow ^ salt_) % own.size();
  }
  ports_[own[way]]->Send(packet, network_.now());
}

Network::Network(const NetworkConfig& config)
    : config_(config),
      store_(port::MaxDatagram(config.mtu)),
      seeds_(config.seed),
      random_(seeds_.Bits()) {}

Network::~Network() = default;

Switch& Network::AddSwitch() {
  switches_.push_back(std::make_unique<Switch>(*this, static_cast<uint32_t>(switches_.size() + 1)));
  return *switches_.back();
}

Link& Network::AddLink(const LinkConfig& config, Node& to, std::string name) {
  links_.push_back(std::make_unique<Link>(*this, static_cast<uint32_t>(links_.size()), config, to,
                                          std::move(name)));
  links_.back()->faults().Seed(NextSeed());
  return *links_.back();
}

void Network::OnDelivery(uint32_t link, const Packet& packet) {
  ++deliveries_;
  uint64_t head = 0;
  std::memcpy(&head, packet.data + 4, sizeof head);
  const uint64_t what = head ^ uint64_t { packet.opcode() } << 56 ^ packet.size;
  trace_ = Mix(trace_ ^ what) + static_cast<uint64_t>(now().ns) * 0x9E3779B97F4A7C15 + link;
}

}  // namespace rocegw::sim
