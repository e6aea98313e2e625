// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/topology.h"

#include <limits>
#include <string>

namespace rocegw::sim {
namespace {

LinkConfig NicSide(LinkConfig config) {
  config.queue_bytes = std::numeric_limits<uint64_t>::max() / 2;
  config.ecn = {};
  config.hints = {};
  return config;
}

std::string NameOf(const Endpoint& endpoint) { return "h" + std::to_string(endpoint.number()); }

// Connects an endpoint and a switch by a cable.
void WireEdge(Network& network, Endpoint& endpoint, Switch& to, const LinkConfig& edge,
              Wiring& wiring) {
  Link& up = network.AddLink(NicSide(edge), to, NameOf(endpoint) + ">");
  Link& down = network.AddLink(edge, endpoint, ">" + NameOf(endpoint));
  endpoint.Attach(up);
  to.Route(endpoint.number(), to.AddPort(down));
  wiring.up.push_back(&up);
  wiring.down.push_back(&down);
}

}  // namespace

Wiring WirePair(Network& network, Endpoint& a, Endpoint& b, const LinkConfig& cable) {
  Wiring wiring;
  Link& there = network.AddLink(NicSide(cable), b, NameOf(a) + ">" + NameOf(b));
  Link& back = network.AddLink(NicSide(cable), a, NameOf(b) + ">" + NameOf(a));
  a.Attach(there);
  b.Attach(back);
  wiring.up = {&there, &back};
  wiring.down = {&back, &there};
  return wiring;
}

Wiring WireStar(Network& network, std::span<Endpoint* const> endpoints, const LinkConfig& edge) {
  Wiring wiring;
  Switch& middle = network.AddSwitch();
  wiring.switches.push_back(&middle);
  for (Endpoint* endpoint : endpoints) WireEdge(network, *endpoint, middle, edge, wiring);
  return wiring;
}

Wiring WireDumbbell(Network& network, std::span<Endpoint* const> endpoints, size_t left,
                    const LinkConfig& edge, const LinkConfig& trunk) {
  return WireDumbbell(network, endpoints, left, edge, std::span(&trunk, 1));
}

Wiring WireDumbbell(Network& network, std::span<Endpoint* const> endpoints, size_t left,
                    const LinkConfig& edge, std::span<const LinkConfig> trunks) {
  Wiring wiring;
  Switch* ends[2] = {&network.AddSwitch(), &network.AddSwitch()};
  wiring.switches = {ends[0], ends[1]};
  for (size_t i = 0; i < endpoints.size(); ++i) {
    WireEdge(network, *endpoints[i], *ends[i < left ? 0 : 1], edge, wiring);
  }
  for (const LinkConfig& trunk : trunks) {
    Link& there = network.AddLink(trunk, *ends[1], "left>right");
    Link& back = network.AddLink(trunk, *ends[0], "right>left");
    ends[0]->RouteOthers(ends[0]->AddPort(there));
    ends[1]->RouteOthers(ends[1]->AddPort(back));
    wiring.trunk.push_back(&there);
    wiring.trunk.push_back(&back);
  }
  return wiring;
}

Wiring WireLeafSpine(Network& network, std::span<Endpoint* const> endpoints, size_t per_leaf,
                     size_t spines, const LinkConfig& edge, const LinkConfig& fabric) {
  Wiring wiring;
  std::vector<Switch*> tops;
  for (size_t s = 0; s < spines; ++s) tops.push_back(&network.AddSwitch());
  for (size_t first = 0, leaf = 1; first < endpoints.size(); first += per_leaf, ++leaf) {
    Switch& bottom = network.AddSwitch();
    wiring.switches.push_back(&bottom);
    const auto below = endpoints.subspan(first, std::min(per_leaf, endpoints.size() - first));
    for (Endpoint* endpoint : below) WireEdge(network, *endpoint, bottom, edge, wiring);
    for (size_t s = 0; s < spines; ++s) {
      const std::string names = std::to_string(leaf) + ":" + std::to_string(s + 1);
      Link& up = network.AddLink(fabric, *tops[s], "leaf" + names + "up");
      Link& down = network.AddLink(fabric, bottom, "leaf" + names + "down");
      bottom.RouteOthers(bottom.AddPort(up));
      const size_t port = tops[s]->AddPort(down);
      for (Endpoint* endpoint : below) tops[s]->Route(endpoint->number(), port);
      wiring.trunk.push_back(&up);
      wiring.trunk.push_back(&down);
    }
  }
  wiring.switches.insert(wiring.switches.end(), tops.begin(), tops.end());
  return wiring;
}

}  // namespace rocegw::sim
