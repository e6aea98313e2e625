// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donor_choice.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "controlplane/donors/donor_shares.h"

namespace rocegw::donors {
namespace {

constexpr char kZoneLabel[] = "zone";
constexpr size_t kUsualDonors = 8;
constexpr size_t kMostDonors = 64;  // that a session takes
constexpr int kMostTenantsReported = 64;

std::string GatewayOf(const types::v1::Donor& donor) {
  return "gateways/" + model::NameOf(donor.name()).parent;
}

const types::v1::Gateway* FindGateway(const controllers::FleetView& view,
                                      const types::v1::Donor& donor) {
  const auto known = view.gateways.find(GatewayOf(donor));
  return known == view.gateways.end() ? nullptr : &known->second.object;
}

// Candidate and its free bytes.
struct Candidate {
  const types::v1::Donor* donor;
  uint64_t free;
  // Order: by room that the session can use, and then another order for each that asks. Whatever a
  // donor says of its memory, it is not the first choice of everybody.
  std::pair<uint64_t, size_t> rank;
};

// By domain, the best first.
using Domains = std::map<std::string, std::vector<Candidate>>;

Domains CandidatesOf(const controllers::FleetView& view, const WantedRoom& wanted) {
  Domains domains;
  for (const auto& [name, known] : view.donors) {
    const types::v1::Donor& donor = known.object;
    if (!donor.status().pool().empty()) continue;
    if (!Serves(view, donor) || GatewayOf(donor) == wanted.not_of) continue;
    const uint64_t free =
        std::min(FreeFor(donor, wanted.tenant), ShareLeft(view, donor, wanted.tenant));
    if (free == 0) continue;
    const size_t turn =
        std::hash<std::string>()(wanted.not_of + '\n' + wanted.tenant + '\n' + donor.name());
    domains[FailureDomainOf(view, donor)].push_back(
        {&donor, free, {std::min(free, wanted.bytes), turn}});
  }
  for (auto& [domain, candidates] : domains) {
    std::ranges::stable_sort(candidates, std::greater(), &Candidate::rank);
  }
  return domains;
}

std::string InUnits(uint64_t bytes) {
  constexpr uint64_t kMebibyte = 1 << 20;
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte) + " MiB";
}

// Adds the donor with its addresses, which are those of its gateway unless it has one of its own.
types::v1::FoundDonor& AddFound(const controllers::FleetView& view, const types::v1::Donor& donor,
                                std::vector<types::v1::FoundDonor>& donors) {
  types::v1::FoundDonor& found = donors.emplace_back();
  found.set_name(donor.name());
  const types::v1::DonorState& state = donor.status();
  if (!state.address().empty()) {
    found.add_addresses(state.address());
  } else {
    *found.mutable_addresses() = FindGateway(view, donor)->status().addresses();
  }
  found.set_port(state.port());
  found.set_failure_domain(FailureDomainOf(view, donor));
  return found;
}

FoundRoom FindPool(const controllers::FleetView& view, const WantedRoom& wanted) {
  FoundRoom found;
  std::set<std::string> domains;
  uint64_t bytes = 0;
  for (const auto& [name, known] : view.donors) {
    const types::v1::Donor& donor = known.object;
    if (donor.status().pool() != wanted.pool || !Serves(view, donor)) continue;
    const uint64_t table = LeasedBy(donor, wanted.tenant);
    if (table == 0 || found.donors.size() == kMostDonors) continue;
    AddFound(view, donor, found.donors).set_free_bytes(table);
    domains.insert(FailureDomainOf(view, donor));
    bytes += table;
  }
  const uint32_t replicas = std::max(wanted.replicas, 1u);
  if (domains.size() >= replicas && bytes >= replicas * wanted.bytes) return found;
  found.donors.clear();
  found.problem = "block pool " + wanted.pool + " of " + wanted.tenant + " has " + InUnits(bytes) +
                  " in " + std::to_string(domains.size()) + " failure domains; " +
                  InUnits(wanted.bytes) + " in " + std::to_string(replicas) +
                  (replicas == 1 ? " replica" : " replicas") + " are wanted";
  return found;
}

// Says how much the tenant may lease and has leased of all donors; empty: it has no limit.
std::string LimitText(const controllers::FleetView& view, const std::string& tenant) {
  const auto known = view.tenants.find(tenant);
  if (known == view.tenants.end() || !known->second.object.spec().has_donated_bytes()) return {};
  uint64_t leased = 0;
  for (const auto& [name, donor] : view.donors) leased += LeasedBy(donor.object, tenant);
  return "; its limit over all donors is " + InUnits(known->second.object.spec().donated_bytes()) +
         ", it has leased " + InUnits(leased);
}

}  // namespace

uint64_t FreeFor(const types::v1::Donor& donor, const std::string& tenant) {
  const types::v1::DonorState& state = donor.status();
  uint64_t free = state.donated_bytes() - std::min(state.donated_bytes(), state.leased_bytes());
  const auto& quotas = donor.spec().quotas();
  const auto own = std::ranges::find(quotas, tenant, &types::v1::DonorQuota::tenant);
  if (own == quotas.end() && !donor.spec().has_tenant_bytes()) return free;
  const uint64_t quota = own != quotas.end() ? own->bytes() : donor.spec().tenant_bytes();
  return std::min(free, quota - std::min(quota, LeasedBy(donor, tenant)));
}

uint64_t LeasedBy(const types::v1::Donor& donor, const std::string& tenant) {
  const auto& tenants = donor.status().tenants();
  const std::string short_name = model::NameOf(tenant).id;
  const auto used = std::ranges::find(tenants, short_name, &types::v1::DonorUse::tenant);
  if (used != tenants.end()) return used->bytes();
  if (tenants.size() < kMostTenantsReported) return 0;
  return std::ranges::min(tenants, {}, &types::v1::DonorUse::bytes).bytes();
}

std::string FailureDomainOf(const controllers::FleetView& view, const types::v1::Donor& donor) {
  if (!donor.spec().failure_domain().empty()) return donor.spec().failure_domain();
  if (const types::v1::Gateway* const gateway = FindGateway(view, donor)) {
    const auto zone = gateway->meta().labels().find(kZoneLabel);
    if (zone != gateway->meta().labels().end() && !zone->second.empty()) return zone->second;
  }
  return GatewayOf(donor);
}

bool IsToDrain(const controllers::FleetView& view, const types::v1::Donor& donor) {
  const types::v1::Gateway* const gateway = FindGateway(view, donor);
  return !donor.spec().approved() || donor.spec().admin_state() == types::v1::DRAINING ||
         (gateway != nullptr && gateway->spec().admin_state() == types::v1::DRAINING);
}

bool Serves(const controllers::FleetView& view, const types::v1::Donor& donor) {
  const types::v1::Gateway* const gateway = FindGateway(view, donor);
  return donor.status().health() == types::v1::DonorState::SERVING && gateway != nullptr &&
         gateway->status().connected() && !donor.status().draining() && !IsToDrain(view, donor);
}

FoundRoom FindRoom(const controllers::FleetView& view, const WantedRoom& wanted) {
  if (!wanted.pool.empty()) return FindPool(view, wanted);
  const uint64_t replicas = std::max(wanted.replicas, 1u);
  const size_t usual = wanted.donors == 0 ? kUsualDonors : wanted.donors;
  const Domains domains = CandidatesOf(view, wanted);
  // Domains take turns, each with one donor.
  std::vector<std::pair<const std::string*, Candidate>> order;
  for (size_t turn = 0; order.size() < kMostDonors; ++turn) {
    std::vector<std::pair<const std::string*, Candidate>> round;
    for (const auto& [domain, candidates] : domains) {
      if (turn < candidates.size()) round.emplace_back(&domain, candidates[turn]);
    }
    if (round.empty()) break;
    std::ranges::stable_sort(
        round, [](const auto& a, const auto& b) { return a.second.rank > b.second.rank; });
    order.insert(order.end(), round.begin(), round.end());
  }
  // Each page needs replicas in different domains: a domain counts with at most the whole space.
  const auto room_of = [&](const std::map<const std::string*, uint64_t>& free) {
    uint64_t room = 0;
    for (const auto& [domain, bytes] : free) room += std::min(bytes, wanted.bytes);
    return room;
  };
  FoundRoom found;
  std::map<const std::string*, uint64_t> free;
  for (const auto& [domain, candidate] : order) {
    if (found.donors.size() == kMostDonors) break;
    if (found.donors.size() >= usual && room_of(free) >= replicas * wanted.bytes) break;
    free[domain] += candidate.free;
    AddFound(view, *candidate.donor, found.donors).set_free_bytes(candidate.free);
  }
  const uint64_t room = room_of(free);
  if (room >= replicas * wanted.bytes) return found;
  found.donors.clear();
  found.problem = "donors have room for " + InUnits(room) + " of " + wanted.tenant + " in " +
                  std::to_string(free.size()) + " failure domains; " + InUnits(wanted.bytes) +
                  " in " + std::to_string(replicas) + (replicas == 1 ? " replica" : " replicas") +
                  " are wanted" + LimitText(view, wanted.tenant);
  return found;
}

}  // namespace rocegw::donors
