// SPDX-License-Identifier: Apache-2.0
// Wires endpoints (hosts, RNIC models) together: pair, star, dumbbell, leaf and spine. `edge` is
// the cable between an endpoint and its switch, both ways; its marking and queue are those of the
// switch's side, since an endpoint's own queue belongs to its NIC, which pushes back instead.
#pragma once

#include <span>
#include <vector>

#include "tests/sim/network/network.h"

namespace rocegw::sim {

// Something with an address and one cable.
class Endpoint : public Node {
 public:
  explicit Endpoint(uint32_t number) : number_(number) {}
  uint32_t number() const { return number_; }
  // Where it sends.
  virtual void Attach(Link& uplink) = 0;

 private:
  const uint32_t number_;
};

struct Wiring {
  std::vector<Link*> up;    // by endpoint, in the order given
  std::vector<Link*> down;  // towards each
  // Dumbbell: left to right, right to left, for each cable; leaf and spine: all between.
  std::vector<Link*> trunk;
  std::vector<Switch*> switches;
};

// Two endpoints on one cable.
Wiring WirePair(Network& network, Endpoint& a, Endpoint& b, const LinkConfig& cable);
// All on one switch: N to 1 is an incast.
Wiring WireStar(Network& network, std::span<Endpoint* const> endpoints, const LinkConfig& edge);
// Two switches with one cable between; the first `left` endpoints are on its left.
Wiring WireDumbbell(Network& network, std::span<Endpoint* const> endpoints, size_t left,
                    const LinkConfig& edge, const LinkConfig& trunk);
// The same with several cables between, and ECMP over them.
Wiring WireDumbbell(Network& network, std::span<Endpoint* const> endpoints, size_t left,
                    const LinkConfig& edge, std::span<const LinkConfig> trunks);
// `per_leaf` endpoints on each leaf, every leaf on every spine; ECMP upwards.
Wiring WireLeafSpine(Network& network, std::span<Endpoint* const> endpoints, size_t per_leaf,
                     size_t spines, const LinkConfig& edge, const LinkConfig& fabric);

}  // namespace rocegw::sim
