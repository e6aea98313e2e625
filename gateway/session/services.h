// SPDX-License-Identifier: Apache-2.0
// Objects that all sessions share: the loop, the workers, generators of keys and numbers, pools,
// devices, rules. Each is an interface of its own, and sessions offer their commands these, not the
// whole. Owned by the session server, which outlives its sessions; control thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "gateway/loop/control_loop.h"
#include "gateway/memory/atomic_locks.h"
#include "gateway/port/steering.h"
#include "gateway/session/attach/client_call_queue.h"
#include "gateway/session/descriptors/descriptor_receiver.h"
#include "gateway/session/descriptors/paced_receiver.h"
#include "gateway/session/drain.h"
#include "gateway/session/heap_return.h"
#include "gateway/session/objects/multicast_groups.h"
#include "gateway/session/objects/xrc_domains.h"
#include "gateway/session/options.h"
#include "gateway/session/reserve/key_generator.h"
#include "gateway/session/reserve/qpn_allocator.h"
#include "gateway/session/reserve/random.h"
#include "gateway/session/rules/device_table.h"
#include "gateway/session/rules/pool_rules.h"
#include "gateway/session/rules/reports.h"
#include "gateway/session/rules/slot_shares.h"
#include "gateway/session/rules/worker_choice.h"
#include "gateway/session/state/event_log.h"
#include "gateway/session/workers/worker_requests.h"
#include "gateway/tenant/registry.h"

namespace rocegw::session {

struct Services {
  // The loop, the links and the drain outlive the services.
  Services(ControlLoop& control_loop, const std::vector<worker::WorkerLink*>& links,
           const port::SteeringTable& the_steering, std::vector<Device> the_devices,
           Options the_options, const Drain& the_drain, Log the_log);

  memory::AtomicLocks trusted_locks;
  ControlLoop& loop;
  // Receives what programs pass; set before the first program attaches. For programs of a pool:
  // ReceiverOf makes one for each connection.
  std::shared_ptr<DescriptorReceiver> descriptors = std::make_shared<ReceiverHere>();
  std::shared_ptr<DescriptorReceiver> ReceiverOf(const tenant::Pool& pool) {
    return receivers.Of(pool.id(), descriptors);
  }
  PoolReceivers receivers;
  const std::shared_ptr<ReturnedCalls> returned_calls = std::make_shared<ReturnedCalls>();
  // Called when a copier of an ended session has released client memory; for the attach server.
  std::function<void()> on_copier_ended;
  const port::SteeringTable steering;
  const Options options;
  tenant::Registry pools;
  EventLog events;
  std::vector<int> wake_fds;  // wake descriptors of the workers
  WorkerRequests workers;
  Random random;
  KeyGenerator keys;
  QpnAllocator qpns;
  WorkerChoice choice;
  DeviceTable devices;
  Reports reports;
  PoolRules rules;
  MulticastGroups multicast;
  XrcDomains xrc;
  SlotShares slots;
  HeapReturn heap{loop, [this] { return pools.gateway().used(Resource::kHeapBytes); }};

 private:
  static std::vector<int> WakeFds(const std::vector<worker::WorkerLink*>& links);
};

}  // namespace rocegw::session
