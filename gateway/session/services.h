// SPDX-License-Identifier: Apache-2.0
// State that all sessions share: the loop, the workers, generators of keys and numbers, pools,
// devices. Owned by the session server, which outlives its sessions; control thread.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/loop/control_loop.h"
#include "gateway/memory/atomic_locks.h"
#include "gateway/port/steering.h"
#include "gateway/session/attach/client_call_queue.h"
#include "gateway/session/attach/descriptor_receiver.h"
#include "gateway/session/drain.h"
#include "gateway/session/heap_return.h"
#include "gateway/session/objects/multicast_groups.h"
#include "gateway/session/objects/xrc_domains.h"
#include "gateway/session/options.h"
#include "gateway/session/reserve/key_generator.h"
#include "gateway/session/reserve/qpn_allocator.h"
#include "gateway/session/reserve/random.h"
#include "gateway/session/state/event_log.h"
#include "gateway/session/state/log_limiter.h"
#include "gateway/session/worker_requests.h"
#include "gateway/tenant/charge.h"
#include "gateway/tenant/registry.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::session {

// Returns CLOCK_REALTIME in ns since 1970.
int64_t WallClockNs();

struct Services {
  // The loop, the links and the drain outlive the services.
  Services(ControlLoop& control_loop, const std::vector<worker::WorkerLink*>& links,
           const port::SteeringTable& the_steering, std::vector<Device> the_devices,
           Options the_options, const Drain& the_drain, Log the_log);

  void Say(Severity severity, const std::string& line) {
    log.Say(severity, line, ControlLoop::Now());
  }
  // Reports an event, and at a limited rate a line in the log.
  void Tell(const std::string& reason, const std::string& object, const std::string& subject,
            const std::string& text);
  void TellRefused(const tenant::Pool& pool, const tenant::Refusal& refusal);

  // Takes an amount from the pool. Returns 0, or the errno to answer with; a refusal is counted and
  // reported.
  [[nodiscard]] int Take(tenant::Pool& pool, Resource resource, uint64_t amount = 1);
  // Takes an amount for the lifetime of `charge`.
  [[nodiscard]] int Take(tenant::Pool& pool, Resource resource, uint64_t amount,
                         tenant::Charge& charge);
  [[nodiscard]] int TakeConnect(tenant::Pool& pool);
  // Writes an amount, or reads it and takes it for the lifetime of `charge`, whatever the limits
  // are now.
  static void HandOver(hand_over::StateStream& state, tenant::Pool& pool, Resource resource,
                       tenant::Charge& charge);

  memory::AtomicLocks trusted_locks;
  ControlLoop& loop;
  // Receives what programs pass; set before the first program attaches.
  std::shared_ptr<DescriptorReceiver> descriptors = std::make_shared<ReceiverHere>();
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
  std::vector<Device> devices;
  // GIDs of each device as its QPs see them. A change creates a new table, and QPs keep their first
  // one, so tables are never freed; changes are rare.
  std::vector<const verbs::GidTable*> gid_tables;

  void AddDevice(Device device) {
    devices.push_back(std::move(device));
    gid_tables.push_back(Publish(devices.back()));
  }
  void UpdateDevice(size_t index, Device device) {
    const bool same_gids = devices[index].gids == device.gids;
    devices[index] = std::move(device);
    if (!same_gids) gid_tables[index] = Publish(devices[index]);
    ForgetViews();
  }

  // Devices with the addresses that programs of the pool see; other addresses are zero, indices
  // stay. Valid until ForgetViews.
  struct View {
    std::vector<Device> devices;
    std::vector<const verbs::GidTable*> gid_tables;
  };
  const std::vector<Device>& DevicesOf(const tenant::Pool& pool) {
    return addresses_are_owned_ ? ViewOf(pool).devices : devices;
  }
  const verbs::GidTable* GidTableOf(const tenant::Pool& pool, size_t device) {
    return addresses_are_owned_ ? ViewOf(pool).gid_tables[device] : gid_tables[device];
  }
  // Returns true if the address belongs to the pool, or to no pool and the pool has none of its
  // own.
  bool MaySee(const tenant::Pool& pool, const wire::Gid& address) const;
  // Returns the id of the pool that owns the address; 0: none.
  uint64_t OwnerOf(const wire::Gid& address) const;
  bool addresses_are_owned() const { return addresses_are_owned_; }
  // Discards the views after pools or devices changed.
  void ForgetViews();

  // Returns 0, or ESHUTDOWN while the gateway drains: `what` must not begin.
  [[nodiscard]] int CheckDrain(const tenant::Pool& pool, const char* what);
  // Returns 0, or EACCES, counted and reported.
  [[nodiscard]] int CheckPeer(tenant::Pool& pool, const wire::Gid& peer);
  // Reports queue pairs whose connection to the peer was revoked.
  void TellRevoked(tenant::Pool& pool, const wire::Gid& peer, uint32_t queue_pairs);
  // Returns nullptr if any peer is allowed.
  const verbs::PeerRules* PeerRulesOf(const tenant::Pool& pool);

  // Returns true if the pool's devices have FLUSH and ATOMIC WRITE.
  bool HasPlacement(const tenant::Pool& pool) const;

  // Returns the part of a queue pair's configuration that follows from pool and port.
  verbs::QpConfig QpConfigOn(const tenant::Pool& pool, uint32_t device);

  // Takes a number for a new queue pair, and so its worker: workers round-robin, without those that
  // have no number left. Nothing: none left.
  struct TakenQpn {
    Qpn qpn;
    WorkerIndex worker = 0;
  };
  // `on`: only a number of that worker.
  std::optional<TakenQpn> TakeQpn(std::optional<WorkerIndex> on = std::nullopt);
  // Returns a worker for a new object, round-robin.
  WorkerIndex NextWorker();

  MulticastGroups multicast;
  XrcDomains xrc;
  const Drain& drain;
  size_t next_worker = 0;  // for the next QP or SRQ
  LogLimiter log;
  HeapReturn heap{loop, [this] { return pools.gateway().used(Resource::kHeapBytes); }};

 private:
  const verbs::GidTable* Publish(const Device& device);
  static std::vector<int> WakeFds(const std::vector<worker::WorkerLink*>& links);

  const View& ViewOf(const tenant::Pool& pool);

  std::vector<std::unique_ptr<const verbs::GidTable>> all_gid_tables_;
  std::vector<std::unique_ptr<const verbs::PeerRules>> all_peer_rules_;
  bool addresses_are_owned_ = false;
  std::unordered_map<uint64_t, View> views_;  // by pool
};

}  // namespace rocegw::session
