// SPDX-License-Identifier: Apache-2.0
// Simulated network: virtual time, packets, links and switches of one run. Everything is
// deterministic: the same seed and calls give the same packets at the same nanosecond. The trace
// hash tells whether two runs were equal. One thread; several networks may run in several threads.
//
//   Network network({.seed = 7});
//   Switch& tor = network.AddSwitch("tor");
//   Link& down = network.AddLink({.ecn = {...}}, host_node, "tor>h1");
//   tor.Route(1, tor.AddPort(down));
//   network.RunUntil(...);
//
// topology.h builds whole topologies. Hosts are numbered from 1; addresses contain the host's
// number (AddressOf), and switches route by it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/network/event_queue.h"
#include "tests/sim/network/link.h"
#include "tests/sim/network/packet.h"
#include "tests/sim/network/random.h"

namespace rocegw::sim {

struct NetworkConfig {
  uint64_t seed = 1;
  size_t mtu = 4200;  // MTU of the links, with the IP header
};

// Output-queued switch that forwards by the destination's number. Of several routes to a host, it
// selects one by a hash of addresses and UDP source port, salted by the switch's number (ECMP).
class Switch final : public Node {
 public:
  Switch(Network& network, uint32_t number) : network_(network), salt_(Mix(number)) {}

  size_t AddPort(Link& out);
  // Adds a route to that host.
  void Route(uint32_t host, size_t port);
  // Adds a route for hosts without their own.
  void RouteOthers(size_t port) { others_.push_back(static_cast<uint16_t>(port)); }

  void Arrive(Packet* packet) override;
  // Returns the number of packets without a route.
  uint64_t unroutable() const { return unroutable_; }

 private:
  Network& network_;
  const uint64_t salt_;
  std::vector<Link*> ports_;
  std::vector<std::vector<uint16_t>> routes_;  // by host
  std::vector<uint16_t> others_;
  uint64_t unroutable_ = 0;
};

class Network {
 public:
  explicit Network(const NetworkConfig& config = {});
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  Switch& AddSwitch();
  Link& AddLink(const LinkConfig& config, Node& to, std::string name);

  const NetworkConfig& config() const { return config_; }
  EventQueue& queue() { return queue_; }
  TimePoint now() const { return queue_.now(); }
  PacketStore& store() { return store_; }
  // Random numbers of the network itself (marking); hosts and links have their own.
  Random& random() { return random_; }
  // Returns a seed for a component, different for each call.
  uint64_t NextSeed() { return seeds_.Bits(); }
  const std::vector<std::unique_ptr<Link>>& links() const { return links_; }

  bool RunOne(TimePoint end = kNever) { return queue_.RunOne(end); }
  void RunUntil(TimePoint end) { queue_.RunUntil(end); }
  void RunFor(Duration time) { queue_.RunUntil(now() + time); }

  // Returns the number of arrivals at switches and hosts.
  uint64_t deliveries() const { return deliveries_; }
  // Returns a hash of all deliveries: time, link, and the packet's first bytes.
  uint64_t trace_hash() const { return trace_; }

  // Returns a packet number in order of entry to the network. For ports and models.
  uint64_t NextNumber() { return ++entered_; }
  uint64_t entered() const { return entered_; }

 private:
  friend class Link;
  void OnDelivery(uint32_t link, const Packet& packet);

  NetworkConfig config_;
  EventQueue queue_;
  PacketStore store_;
  Random seeds_;
  Random random_;
  std::vector<std::unique_ptr<Switch>> switches_;
  std::vector<std::unique_ptr<Link>> links_;
  uint64_t deliveries_ = 0;
  uint64_t entered_ = 0;
  uint64_t trace_ = 0;
};

}  // namespace rocegw::sim
