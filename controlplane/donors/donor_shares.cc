// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donor_shares.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

#include "controlplane/donors/donor_choice.h"

namespace rocegw::donors {
namespace {

using controllers::FleetView;
using controllers::Known;
using types::v1::Donor;
using types::v1::DonorShare;
using types::v1::DonorState;
using types::v1::Tenant;

// Smallest lease: a smaller difference helps no session.
constexpr uint64_t kUnit = 64 << 10;
// Smallest divisions: what is left of a limit is divided among at least so many donors, and among
// more only if each gets so much: sessions need some slabs of each donor.
constexpr uint64_t kUsualGrowth = uint64_t{256} << 20;
constexpr size_t kFewestGrowing = 8;
// A share changes when it should change by this part of what it lets the tenant lease further.
constexpr uint64_t kNotableShare = 8;

// Donor that may lease to the tenant, now or until it follows its share.
struct Holder {
  std::string name;
  std::string domain;
  uint64_t leased = 0;
  uint64_t held = 0;    // the most that it may lease until it follows a smaller share
  uint64_t stored = 0;  // its share
  uint64_t free = 0;    // that it could lease further by its own quotas; 0: it gets no more
  size_t turn = 0;      // among the donors of its domain
  uint64_t target = 0;
};

const DonorShare* FindShare(const Tenant& tenant, const std::string& donor) {
  const auto& shares = tenant.status().donor_shares();
  const auto found = std::ranges::lower_bound(shares, donor, {}, &DonorShare::donor);
  return found != shares.end() && found->donor() == donor ? &*found : nullptr;
}

std::vector<Holder> HoldersOf(const FleetView& view, const Known<Tenant>& tenant) {
  std::vector<Holder> holders;
  for (const auto& [name, known] : view.donors) {
    const Donor& donor = known.object;
    const DonorState::Health health = donor.status().health();
    // A donor that is not there has no leases.
    if (health != DonorState::SERVING && health != DonorState::SILENT) continue;
    Holder holder{.name = name, .domain = FailureDomainOf(view, donor)};
    holder.leased = LeasedBy(donor, tenant.object.name());
    holder.held = holder.leased;
    if (const DonorShare* const share = FindShare(tenant.object, name)) {
      holder.stored = share->bytes();
      const bool follows = donor.status().followed_shares() >= tenant.status_revision;
      holder.held = std::max({holder.leased, share->bytes(), follows ? 0 : share->before_bytes()});
    }
    if (Serves(view, donor)) holder.free = FreeFor(donor, tenant.object.name());
    if (holder.held != 0 || holder.free != 0) holders.push_back(std::move(holder));
  }
  return holders;
}

// Sorts donors that should have what is left of the limit first: those that the tenant uses
// already, then one of each domain, those with most room first.
void SortByUse(std::vector<Holder>& holders) {
  std::ranges::stable_sort(holders, std::greater(), &Holder::free);
  std::map<std::string, size_t> turns;
  for (Holder& holder : holders) holder.turn = turns[holder.domain]++;
  std::ranges::stable_sort(holders, {}, [](const Holder& holder) {
    return std::tuple(holder.free == 0, holder.leased == 0, holder.held == 0, holder.turn);
  });
}

// Sets the share that each donor should have: what is leased there and a part of what is left.
void SetTargets(uint64_t limit, std::vector<Holder>& holders) {
  uint64_t leased = 0;
  for (Holder& holder : holders) {
    holder.target = holder.leased;
    leased += holder.leased;
  }
  const uint64_t left = limit - std::min(limit, leased);
  const size_t most = std::max<size_t>(kFewestGrowing, left / kUsualGrowth);
  const auto growing = std::ranges::subrange(
      holders.begin(), holders.begin() + static_cast<ptrdiff_t>(std::min(most, holders.size())));
  // As floating point: products of two amounts of memory exceed 64 bits.
  double free = 0;
  for (const Holder& holder : growing) free += static_cast<double>(holder.free);
  if (free == 0) return;
  for (Holder& holder : growing) {
    const double part = static_cast<double>(holder.free) / free;
    const auto grows = static_cast<uint64_t>(static_cast<double>(left) * part);
    holder.target += std::min(grows, holder.free) / kUnit * kUnit;
  }
}

bool IsNotable(const Holder& holder) {
  const uint64_t difference =
      holder.target > holder.stored ? holder.target - holder.stored : holder.stored - holder.target;
  const uint64_t further = holder.target - holder.leased;
  return difference != 0 && (holder.stored == 0 || holder.target == 0 ||
                             difference >= std::max(kUnit, further / kNotableShare));
}

}  // namespace

std::optional<types::v1::TenantStatus> NewShares(const FleetView& view,
                                                 const Known<Tenant>& tenant) {
  const Tenant& object = tenant.object;
  types::v1::TenantStatus status = object.status();
  status.clear_donor_shares();
  if (!object.spec().has_donated_bytes()) {
    return object.status().donor_shares().empty() ? std::nullopt : std::optional(status);
  }
  const uint64_t limit = object.spec().donated_bytes();
  std::vector<Holder> holders = HoldersOf(view, tenant);
  SortByUse(holders);
  SetTargets(limit, holders);
  uint64_t held = 0;
  for (const Holder& holder : holders) held += holder.held;
  uint64_t budget = limit - std::min(limit, held);
  std::map<std::string, DonorShare> shares;
  bool changes = false;
  for (const Holder& holder : holders) {
    if (shares.size() >= kMostShares && holder.held == 0) continue;
    uint64_t bytes = IsNotable(holder) ? holder.target : holder.stored;
    if (bytes > holder.held) {
      const uint64_t grows = std::min(bytes - holder.held, budget) / kUnit * kUnit;
      budget -= grows;
      bytes = holder.held + grows;
    }
    changes = changes || bytes != holder.stored;
    if (bytes == 0 && holder.held == 0) continue;
    DonorShare& share = shares[holder.name];
    share.set_donor(holder.name);
    share.set_bytes(bytes);
    if (holder.held > bytes) share.set_before_bytes(holder.held);
  }
  for (const DonorShare& share : object.status().donor_shares())
    changes = changes || !shares.contains(share.donor());
  if (!changes) return std::nullopt;
  for (auto& [name, share] : shares) status.add_donor_shares()->Swap(&share);
  return status;
}

uint64_t ShareLeft(const FleetView& view, const Donor& donor, const std::string& tenant) {
  const auto known = view.tenants.find(tenant);
  if (known == view.tenants.end() || !known->second.object.spec().has_donated_bytes())
    return UINT64_MAX;
  const DonorShare* const share = FindShare(known->second.object, donor.name());
  const uint64_t bytes = share == nullptr ? 0 : share->bytes();
  return bytes - std::min(bytes, LeasedBy(donor, tenant));
}

void AddQuotas(const FleetView& view, const Donor& donor, fleet::v1::DonorOrder& order) {
  std::map<std::string, uint64_t> quotas;
  for (const types::v1::DonorQuota& quota : donor.spec().quotas())
    quotas[quota.tenant()] = quota.bytes();
  const bool has_other = donor.spec().has_tenant_bytes();
  if (has_other) order.set_tenant_bytes(donor.spec().tenant_bytes());
  for (const std::string& name : view.tenants_with_shares) {
    const Known<Tenant>& tenant = view.tenants.at(name);
    if (!tenant.object.spec().has_donated_bytes()) continue;
    const DonorShare* const share = FindShare(tenant.object, donor.name());
    const uint64_t other = has_other ? donor.spec().tenant_bytes() : UINT64_MAX;
    uint64_t& quota = quotas.try_emplace(name, other).first->second;
    quota = std::min(quota, share == nullptr ? 0 : share->bytes());
    order.set_shares_revision(std::max(order.shares_revision(), tenant.status_revision));
  }
  for (const auto& [tenant, bytes] : quotas) {
    types::v1::DonorQuota& quota = *order.add_quotas();
    quota.set_tenant(tenant);
    quota.set_bytes(bytes);
  }
}

}  // namespace rocegw::donors
