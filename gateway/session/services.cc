// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/services.h"

#include <time.h>

#include <algorithm>
#include <cerrno>

#include "gateway/tenant/tag.h"

namespace rocegw::session {
namespace {

constexpr char kDefaultTenant[] = "tenants/default";

bool Owns(const tenant::Pool& pool, const wire::Gid& address) {
  const auto& own = pool.settings().addresses;
  return std::ranges::find(own, address) != own.end();
}

}  // namespace

int64_t WallClockNs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

tenant::Amounts CapacityOf(const Limits& limits) {
  tenant::Amounts capacity = tenant::Amounts::Of(tenant::kUnlimited);
  capacity[Resource::kSessions] = limits.sessions;
  capacity[Resource::kPds] = limits.pds;
  capacity[Resource::kCqs] = limits.cqs;
  capacity[Resource::kSrqs] = limits.srqs;
  capacity[Resource::kQps] = limits.qps;
  capacity[Resource::kMrs] = limits.mrs;
  capacity[Resource::kCmIds] = limits.cm_ids;
  capacity[Resource::kListeners] = limits.cm_ids;
  capacity[Resource::kRegisteredBytes] = limits.registered_bytes;
  capacity[Resource::kSegmentBytes] = limits.segment_bytes;
  capacity[Resource::kDescriptors] = limits.descriptors;
  capacity[Resource::kHeapBytes] = limits.heap_bytes;
  capacity[Resource::kRemappedBytes] = limits.remapped_bytes;
  return capacity;
}

tenant::PoolSettings DefaultPool(const Options& options) {
  tenant::PoolSettings pool;
  pool.name = kDefaultPool;
  pool.trusted = options.trusted;
  pool.remap_allowed = options.remap_allowed;
  return pool;
}

Services::Services(ControlLoop& control_loop, const std::vector<worker::WorkerLink*>& links,
                   const port::SteeringTable& the_steering, std::vector<Device> the_devices,
                   Options the_options, const Drain& the_drain, Log the_log)
    : loop(control_loop),
      steering(the_steering),
      options(std::move(the_options)),
      pools(CapacityOf(options.limits)),
      wake_fds(WakeFds(links)),
      workers(links),
      keys(random),
      qpns(steering, workers.worker_count(), random),
      drain(the_drain),
      log(std::move(the_log)) {
  tenant::TenantSettings tenant;
  tenant.name = kDefaultTenant;
  pools.SetTenant(tenant);
  pools.SetPool(DefaultPool(options));
  for (Device& device : the_devices) AddDevice(std::move(device));
}

void Services::Tell(const std::string& reason, const std::string& object,
                    const std::string& subject, const std::string& text) {
  if (events.Add(reason, object, subject, text, WallClockNs(), ControlLoop::Now()))
    Say(Severity::kWarning, text);
}

void Services::TellRefused(const tenant::Pool& pool, const tenant::Refusal& refusal) {
  Tell("QUOTA_EXCEEDED", pool.name(), std::string(refusal.limit), refusal.text);
}

int Services::Take(tenant::Pool& pool, Resource resource, uint64_t amount) {
  const auto refusal = pool.Take(resource, amount);
  if (!refusal) return 0;
  TellRefused(pool, *refusal);
  return refusal->limit == tenant::NameOf(Resource::kDescriptors) ? EMFILE : ENOMEM;
}

int Services::Take(tenant::Pool& pool, Resource resource, uint64_t amount, tenant::Charge& charge) {
  const int error = Take(pool, resource, amount);
  if (error == 0) charge = {pool, resource, amount};
  return error;
}

int Services::TakeConnect(tenant::Pool& pool) {
  const auto refusal = pool.TakeConnect(ControlLoop::Now());
  if (!refusal) return 0;
  TellRefused(pool, *refusal);
  return EAGAIN;
}

const verbs::GidTable* Services::Publish(const Device& device) {
  auto table = std::make_unique<verbs::GidTable>();
  std::copy_n(device.gids.begin(), std::min(device.gids.size(), verbs::GidTable::kSize),
              table->entries.begin());
  // Reuses an equal table, so that a configuration that changes back and forth costs nothing.
  for (const auto& known : all_gid_tables_) {
    if (*known == *table) return known.get();
  }
  all_gid_tables_.push_back(std::move(table));
  return all_gid_tables_.back().get();
}

uint64_t Services::OwnerOf(const wire::Gid& address) const {
  uint64_t owner = 0;
  if (!addresses_are_owned_) return owner;
  // Pools in force come before those that leave.
  pools.ForEachPool([&](const tenant::Pool& pool) {
    if (owner == 0 && Owns(pool, address)) owner = pool.id();
  });
  return owner;
}

bool Services::MaySee(const tenant::Pool& pool, const wire::Gid& address) const {
  if (!addresses_are_owned_) return true;
  if (!pool.settings().addresses.empty()) return Owns(pool, address);
  return OwnerOf(address) == 0;
}

void Services::ForgetViews() {
  views_.clear();
  addresses_are_owned_ = false;
  pools.ForEachPool([&](const tenant::Pool& pool) {
    addresses_are_owned_ |= !pool.settings().addresses.empty();
  });
}

const Services::View& Services::ViewOf(const tenant::Pool& pool) {
  const auto [known, is_new] = views_.try_emplace(pool.id());
  View& view = known->second;
  if (!is_new) return view;
  view.devices = devices;
  for (Device& device : view.devices) {
    for (wire::Gid& gid : device.gids) {
      if (!gid.IsZero() && !MaySee(pool, gid)) gid = {};
    }
    view.gid_tables.push_back(Publish(device));
  }
  return view;
}

int Services::CheckDrain(const tenant::Pool& pool, const char* what) {
  if (!drain.active()) return 0;
  Tell("DRAINING", pool.name(), what,
       pool.name() + ": " + what + " refused, the gateway is being drained");
  return ESHUTDOWN;
}

int Services::CheckPeer(tenant::Pool& pool, const wire::Gid& peer) {
  if (pool.MayTalkTo(peer)) return 0;
  pool.CountPeerRefused();
  Tell("PEER_NOT_ALLOWED", pool.name(), "",
       pool.name() + ": its programs may not talk to " + wire::AddressText(peer) +
           " (allowed_peers)");
  return EACCES;
}

void Services::TellRevoked(tenant::Pool& pool, const wire::Gid& peer, uint32_t queue_pairs) {
  pool.CountPeerRefused(queue_pairs);
  const std::string address = wire::AddressText(peer);
  Tell("PEER_NOT_ALLOWED", pool.name(), address,
       pool.name() + ": its programs may not talk to " + address +
           " any more (allowed_peers); queue pairs that failed: " + std::to_string(queue_pairs));
}

const verbs::PeerRules* Services::PeerRulesOf(const tenant::Pool& pool) {
  const auto& of_tenant = pool.tenant().settings().allowed_peers;
  const auto& of_pool = pool.settings().allowed_peers;
  if (of_tenant.empty() && of_pool.empty()) return nullptr;
  for (const auto& known : all_peer_rules_) {
    if (known->tenant == of_tenant && known->pool == of_pool) return known.get();
  }
  auto rules = std::make_unique<verbs::PeerRules>();
  rules->tenant = of_tenant;
  rules->pool = of_pool;
  all_peer_rules_.push_back(std::move(rules));
  return all_peer_rules_.back().get();
}

bool Services::HasPlacement(const tenant::Pool& pool) const {
  if (options.placement == MemoryPlacement::kDisabled) return false;
  return pool.settings().placement.value_or(options.placement == MemoryPlacement::kEnabled);
}

verbs::QpConfig Services::QpConfigOn(const tenant::Pool& pool, uint32_t device) {
  verbs::QpConfig config;
  config.device = device;
  config.gids = GidTableOf(pool, device);
  config.peers = PeerRulesOf(pool);
  config.tenant_tag = tenant::TagOf(pool.name());
  config.port_mtu = devices[device].active_mtu;
  config.window_bytes = static_cast<uint32_t>(pool.settings().window_bytes);
  config.placement = HasPlacement(pool);
  return config;
}

std::optional<Services::TakenQpn> Services::TakeQpn(std::optional<WorkerIndex> on) {
  const size_t count = on ? 1 : workers.worker_count();
  for (size_t i = 0; i < count; ++i) {
    const WorkerIndex worker = on ? *on : NextWorker();
    if (const auto qpn = qpns.Take(worker, ControlLoop::Now())) return TakenQpn{*qpn, worker};
  }
  return std::nullopt;
}

WorkerIndex Services::NextWorker() {
  return static_cast<WorkerIndex>(next_worker++ % workers.worker_count());
}

std::vector<int> Services::WakeFds(const std::vector<worker::WorkerLink*>& links) {
  std::vector<int> fds;
  fds.reserve(links.size());
  for (const worker::WorkerLink* link : links) fds.push_back(link->worker_wake_fd);
  return fds;
}

}  // namespace rocegw::session
