// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/services.h"

#include <utility>

namespace rocegw::session {
namespace {

constexpr char kDefaultTenant[] = "tenants/default";

}  // namespace

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
      choice(qpns, workers.worker_count()),
      devices(pools),
      reports(events, std::move(the_log)),
      rules(options, the_drain, reports) {
  tenant::TenantSettings tenant;
  tenant.name = kDefaultTenant;
  pools.SetTenant(tenant);
  pools.SetPool(DefaultPool(options));
  for (Device& device : the_devices) devices.Add(std::move(device));
}

std::vector<int> Services::WakeFds(const std::vector<worker::WorkerLink*>& links) {
  std::vector<int> fds;
  fds.reserve(links.size());
  for (const worker::WorkerLink* link : links) fds.push_back(link->worker_wake_fd);
  return fds;
}

}  // namespace rocegw::session
