// SPDX-License-Identifier: Apache-2.0
// Topologies of endpoints (hosts, RNIC models): pair, star, dumbbell, leaf and spine. `edge` is the
// cable between an endpoint and its switch, in both directions. Its marking and queue apply to the
// switch's side only, because an endpoint's queue belongs to its NIC, which pushes back instead.
#pragma once

#include <span>
#include <vector>

#include "tests/sim/network/network.h"

namespace rocegw::sim {

// Node with an address and one cable.
class Endpoint : public Node {
 public:
  explicit Endpoint(uint32_t number) : number_(number) {}
  uint32_t number() const { return number_; }
  // Sets the link that the endpoint sends on.
  virtual void Attach(Link& uplink) = 0;

 private:
  const uint32_t number_;
};

struct Wiring {
  std::vector<Link*> up;    // by endpoint, in the given order
  std::vector<Link*> down;  // towards each endpoint
  // Dumbbell: left to right, then right to left, for each cable. Leaf and spine: all in between.
  std::vector<Link*> trunk;
  std::vector<Switch*> switches;
};

// Connects two endpoints by one cable.
Wiring WirePair(Network& network, Endpoint& a, Endpoint& b, const LinkConfig& cable);
// Connects all to one switch; N to 1 is an incast.
Wiring WireStar(Network& network, std::span<Endpoint* const> endpoints, const LinkConfig& edge);
// Connects two switches by one cable; the first `left` endpoints are on the left one.
Wiring WireDumbbell(Network& network, std::span<Endpoint* const> endpoints, size_t left,
                    const LinkConfig& edge, const LinkConfig& trunk);
// The same with several cables between the switches, and ECMP over them.
Wiring WireDumbbell(Network& network, std::span<Endpoint* const> endpoints, size_t left,
                    const LinkConfig& edge, std::span<const LinkConfig> trunks);
// Connects `per_leaf` endpoints to each leaf and every leaf to every spine; ECMP upwards.
Wiring WireLeafSpine(Network& network, std::span<Endpoint* const> endpoints, size_t per_leaf,
                     size_t spines, const LinkConfig& edge, const LinkConfig& fabric);

}  // namespace rocegw::sim
